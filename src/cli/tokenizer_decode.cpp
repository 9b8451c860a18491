// megalith tokenizer decode: token numbers to text, byte for byte.
#include <algorithm>
#include <charconv>

#include "cli/command.h"
#include "cli/tokenizer_flags.h"
#include "core/error.h"

namespace megalith {
namespace {

/// `source`: where the text is from, for errors. Numbers with white space, commas or line ends between, in
/// brackets or not.
std::vector<Token> parse_tokens(std::string_view text, const std::string& source) {
  constexpr std::string_view between = " \t\r\n,[]";
  std::vector<Token> tokens;
  for (std::size_t place = text.find_first_not_of(between); place != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(between, place), text.size());
    const std::string_view word = text.substr(place, end - place);
    Token token = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc{} || stop != word.data() + word.size()) {
      fail(ErrorKind::input, source, "'{}' at byte {} is no token number", word.substr(0, 40), place);
    }
    tokens.push_back(token);
    place = text.find_first_not_of(between, end);
  }
  return tokens;
}

class TokenizerDecodeCommand : public Command {
 public:
  std::string name() const override { return "tokenizer decode"; }
  std::string summary() const override { return "Turn token numbers back into text"; }
  void declare(Schema& schema) override {
    declare_tokenizer_flags(schema, tokenizer_);
    schema.section("tokens", "What to decode, and how to print it");
    schema
        .add("input", &input_, std::string("-"),
             "token numbers with spaces, commas or line ends between, or a JSON list; - is standard input")
        .metavar("FILE")
        .completes_file();
    schema.add("output", &output_, std::string("-"), "where the bytes go; - is standard output")
        .metavar("FILE")
        .completes_file();
    schema.add("show", &show_, false, "one line a token: number, tab, readable piece");
    schema.positional(tokens_, "TOKEN", "token numbers, instead of --input", 0, std::size_t{1} << 20);
    schema.epilogue(
        "Nothing is added to the text, not even a line end.\n\n"
        "Examples:\n"
        "  megalith tokenizer decode --tokenizer-model my-tokenizer 15496 995\n"
        "  megalith tokenizer decode --vocab-file vocab.json --merge-file merges.txt < book.ids > "
        "book.txt\n");
  }
  int run(Schema& /*schema*/, Log& /*messages*/) override {
    const std::unique_ptr<Tokenizer> tokenizer = load_chosen_tokenizer(tokenizer_);
    std::string words;
    for (const std::string& word : tokens_) words += word + ' ';
    const std::string source = !tokens_.empty() ? "TOKEN" : input_ == "-" ? "standard input" : input_;
    const std::vector<Token> tokens = parse_tokens(tokens_.empty() ? read_all(input_) : words, source);
    for (const Token token : tokens) {
      if (token >= 0 && token < tokenizer->vocab_size()) continue;
      fail(ErrorKind::input, source, "token {} is outside of the tokenizer's vocabulary of {}", token,
           tokenizer->vocab_size());
    }
    if (!show_) {
      write_all(output_, tokenizer->decode(tokens));
      return 0;
    }
    std::string lines;
    for (const Token token : tokens) lines += format("{}\t{}\n", token, tokenizer->piece(token));
    write_all(output_, lines);
    return 0;
  }

 private:
  TokenizerOptions tokenizer_;
  std::string input_;
  std::string output_;
  std::vector<std::string> tokens_;
  bool show_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenizer_decode_command() {
  return std::make_unique<TokenizerDecodeCommand>();
}

}  // namespace megalith
