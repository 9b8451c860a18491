// megalith tokenizer encode: text to token numbers.
#include <algorithm>
#include <charconv>
#include <chrono>

#include "cli/command.h"
#include "cli/tokenizer_flags.h"
#include "core/error.h"

namespace megalith {
namespace {

void append_number(std::string& text, Token token) {
  char digits[16];  // NOLINT: for to_chars
  const auto result = std::to_chars(digits, digits + sizeof digits, token);
  text.append(digits, result.ptr);
}

std::string joined(const std::vector<Token>& tokens, std::string_view between) {
  std::string text;
  text.reserve(tokens.size() * 6);
  for (const Token token : tokens) {
    if (!text.empty()) text += between;
    append_number(text, token);
  }
  return text;
}

class TokenizerEncodeCommand : public Command {
 public:
  std::string name() const override { return "tokenizer encode"; }
  std::string summary() const override { return "Turn text into token numbers"; }
  void declare(Schema& schema) override {
    declare_tokenizer_flags(schema, tokenizer_);
    schema.section("text", "What to encode, and how to print it");
    schema.add("input", &input_, std::string("-"), "the text; - is standard input")
        .metavar("FILE")
        .completes_file();
    schema.add("output", &output_, std::string("-"), "where the numbers go; - is standard output")
        .metavar("FILE")
        .completes_file();
    schema.add("text", &text_, std::string(), "the text itself, instead of --input").metavar("TEXT");
    schema
        .add("format", &format_, std::string("ids"),
             "ids: one line, spaces between; json: a list; count: how many tokens, bytes and how fast")
        .one_of({"ids", "json", "count"});
    schema.add("show", &show_, false, "one line a token: number, tab, readable piece");
    schema.add("parse_special", &parse_special_, false,
               "special tokens written out in the text become their token, not ordinary text");
    schema.add("append_eod", &append_eod_, false, "append the end-of-document token");
    schema.epilogue(
        "Examples:\n"
        "  megalith tokenizer encode --tokenizer-model my-tokenizer --text 'Hello world' --show\n"
        "  megalith tokenizer encode --vocab-file vocab.json --merge-file merges.txt < book.txt > "
        "book.ids\n");
  }
  int run(Schema& schema, Log& messages) override {
    const std::unique_ptr<Tokenizer> tokenizer = load_chosen_tokenizer(tokenizer_);
    const bool given = schema.setting("text").origin() != SettingOrigin::by_default;
    const std::string text = given ? text_ : read_all(input_);
    const auto start = std::chrono::steady_clock::now();
    std::vector<Token> tokens = tokenizer->encode(text, parse_special_);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (append_eod_) {
      if (tokenizer->eod() < 0)
        fail(ErrorKind::usage, "append_eod", "this tokenizer has no end-of-document token");
      tokens.push_back(tokenizer->eod());
    }
    if (show_) {
      std::string lines;
      for (const Token token : tokens) lines += format("{}\t{}\n", token, tokenizer->piece(token));
      write_all(output_, lines);
    } else if (format_ == "json") {
      write_all(output_, "[" + joined(tokens, ", ") + "]\n");
    } else if (format_ == "count") {
      write_all(output_, format("{} tokens, {} bytes, {:.2f} bytes a token\n", tokens.size(), text.size(),
                                tokens.empty()
                                    ? 0.0
                                    : static_cast<double>(text.size()) / static_cast<double>(tokens.size())));
      messages.line(format("encoded in {:.3f} s, {:.1f} MB/s on one thread", elapsed.count(),
                           static_cast<double>(text.size()) / 1e6 / std::max(elapsed.count(), 1e-9)));
    } else {
      write_all(output_, joined(tokens, " ") + "\n");
    }
    return 0;
  }

 private:
  TokenizerOptions tokenizer_;
  std::string input_;
  std::string output_;
  std::string text_;
  std::string format_;
  bool show_ = false;
  bool parse_special_ = false;
  bool append_eod_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenizer_encode_command() {
  return std::make_unique<TokenizerEncodeCommand>();
}

}  // namespace megalith
