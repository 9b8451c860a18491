// megalith data inspect: what a token file holds, and whether it is sound.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/tokenizer_flags.h"
#include "core/error.h"
#include "data/indexed_dataset.h"

namespace megalith {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// One line of at most `limit` bytes: line ends and control characters escaped, cut between characters.
std::string one_line(std::string_view text, std::size_t limit) {
  std::string result;
  std::size_t place = 0;
  while (place < text.size()) {
    std::size_t next = place + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0U) == 0x80U &&
           next - place < 4)
      ++next;
    const std::string_view character = text.substr(place, next - place);
    const auto first = static_cast<unsigned char>(character[0]);
    std::string shown(character);
    if (character == "\n") {
      shown = "\\n";
    } else if (character == "\t") {
      shown = "\\t";
    } else if (first < 0x20 || first == 0x7f || (first & 0xc0U) == 0x80U) {
      shown = format("\\x{:02x}", unsigned{first});
    }
    if (result.size() + shown.size() > limit) return result + " ...";
    result += shown;
    place = next;
  }
  return result;
}

/// Lengths in classes of powers of two: 0, 1, 2-3, 4-7, ...
std::string length_histogram(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int64_t> classes(33, 0);
  for (const std::int32_t length : lengths)
    ++classes[static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(length)))];
  const std::int64_t most = *std::max_element(classes.begin(), classes.end());
  std::size_t first = 0;
  std::size_t last = classes.size() - 1;
  while (first < last && classes[first] == 0) ++first;
  while (last > first && classes[last] == 0) --last;
  std::string text;
  for (std::size_t c = first; c <= last; ++c) {
    const std::int64_t low = c == 0 ? 0 : std::int64_t{1} << (c - 1);
    const std::int64_t high = c == 0 ? 0 : (std::int64_t{1} << c) - 1;
    const std::string range = low == high ? format("{}", low) : format("{}-{}", low, high);
    const auto bar = static_cast<std::size_t>((classes[c] * 40 + most - 1) / std::max<std::int64_t>(most, 1));
    text += format("  {:>21} {:>12}  {}\n", range, classes[c], std::string(bar, '#'));
  }
  return text;
}

class DataInspectCommand : public Command {
 public:
  std::string name() const override { return "data inspect"; }
  std::string summary() const override { return "Show what .bin/.idx files hold and verify them"; }

  void declare(Schema& schema) override {
    schema.positional(paths_, "PREFIX...", "Path of a dataset, with or without .bin or .idx", 1, 10000);
    schema.section("output", "What to show");
    schema.add("samples", &samples_, std::int64_t{3}, "Documents to show, spread over the file")
        .at_least(0)
        .at_most(10000);
    schema.add("sample_bytes", &sample_bytes_, std::int64_t{300}, "Bytes of each document to show")
        .at_least(1);
    schema.add("verify", &verify_, true,
               "Read everything and check sizes, offsets and the range of the tokens");
    declare_tokenizer_flags(schema, tokenizer_options_);
    schema.epilogue(
        "Exit status 3 where a file is damaged. Example:\n"
        "  megalith data inspect corpus_text_document --tokenizer-type GPT2BPETokenizer \\\n"
        "      --vocab-file vocab.json --merge-file merges.txt\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    if (names_tokenizer(tokenizer_options_)) tokenizer_ = load_chosen_tokenizer(tokenizer_options_);
    bool sound = true;
    for (const std::string& path : paths_) {
      try {
        sound = inspect(IndexedDataset(path), messages) && sound;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        std::fflush(stdout);
        messages.line(format("damaged: {}", error.what()));
        sound = false;
      }
    }
    return sound ? 0 : static_cast<int>(ErrorKind::input);
  }

 private:
  std::int64_t vocab_size() const {
    return tokenizer_ ? tokenizer_->vocab_size() : tokenizer_options_.vocab_size;
  }

  bool inspect(const IndexedDataset& dataset, Log& messages) const {
    print(format("{}.bin, .idx: {}, {}, {} each, {} + {} bytes{}\n", dataset.prefix(),
                 counted(dataset.documents(), "document"), counted(dataset.sequences(), "sequence"),
                 name_of(dataset.storage()), dataset.bin_bytes(), dataset.idx_bytes(),
                 dataset.has_modes() ? ", with modes" : ""));
    bool sound = true;
    if (verify_) sound = verify(dataset, messages);
    show_lengths(dataset);
    show_documents(dataset);
    return sound;
  }

  bool verify(const IndexedDataset& dataset, Log& messages) const {
    const IndexedDatasetReport report = dataset.verify(vocab_size());
    print(format(
        "{}, smallest {}, largest {}{}\n", counted(report.tokens, "token"), report.smallest_token,
        report.largest_token,
        vocab_size() > 0 ? format(", vocabulary {}", vocab_size()) : ", range not checked (no tokenizer)"));
    for (const std::string& note : report.notes) print(format("note: {}\n", note));
    if (report.problem_count == 0) {
      print("verified: sizes, offsets, document index and tokens are sound\n");
      return true;
    }
    std::fflush(stdout);
    for (const std::string& problem : report.problems) messages.line(format("damaged: {}", problem));
    if (report.problem_count > report.problems.size()) {
      messages.line(format("damaged: ... and {} more", report.problem_count - report.problems.size()));
    }
    return false;
  }

  static void show_lengths(const IndexedDataset& dataset) {
    if (dataset.sequences() == 0) return;
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(dataset.sequences()));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = static_cast<std::int32_t>(dataset.length(static_cast<std::int64_t>(i)));
      sum += lengths[i];
    }
    const std::string histogram = length_histogram(lengths);
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    const std::int32_t median = *middle;
    const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
    print(format("tokens of a sequence: {} to {}, mean {:.1f}, median {}\n{}", *shortest, *longest,
                 static_cast<double>(sum) / static_cast<double>(lengths.size()), median, histogram));
  }

  void show_documents(const IndexedDataset& dataset) const {
    const std::int64_t shown = std::min(samples_, dataset.documents());
    for (std::int64_t i = 0; i < shown; ++i) {
      const std::int64_t document = shown == 1 ? 0 : i * (dataset.documents() - 1) / (shown - 1);
      const std::int64_t first = dataset.document_start(document);
      const std::int64_t last = dataset.document_start(document + 1);
      if (first < 0 || last < first || last > dataset.sequences()) continue;  // verify() reports it
      std::int64_t total = 0;
      // A few more tokens than bytes are shown: a token is seldom less than a byte of text.
      std::vector<Token> tokens;
      for (std::int64_t s = first; s < last; ++s) {
        const std::int64_t length = dataset.length(s);
        total += length;
        const std::int64_t wanted = std::min(length, sample_bytes_ - std::ssize(tokens));
        if (wanted <= 0) continue;
        const std::size_t before = tokens.size();
        tokens.resize(before + static_cast<std::size_t>(wanted));
        dataset.read(s, 0, std::span(tokens).subspan(before), vocab_size());
      }
      std::string text = one_line(readable(tokens), static_cast<std::size_t>(sample_bytes_));
      if (total > std::ssize(tokens) && !text.ends_with(" ...")) text += " ...";
      print(format("document {} ({}): {}\n", document, counted(total, "token"), text));
    }
  }

  std::string readable(const std::vector<Token>& tokens) const {
    if (tokenizer_) return tokenizer_->decode(tokens);
    std::string text;
    for (const Token token : tokens) text += format("{}{}", text.empty() ? "" : " ", token);
    return text;
  }

  std::vector<std::string> paths_;
  std::int64_t samples_ = 0;
  std::int64_t sample_bytes_ = 0;
  bool verify_ = true;
  TokenizerOptions tokenizer_options_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace

std::unique_ptr<Command> make_data_inspect_command() {
  return std::make_unique<DataInspectCommand>();
}

}  // namespace megalith
