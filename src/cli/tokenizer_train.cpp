// megalith tokenizer train: byte-level BPE from text.
#include <algorithm>
#include <chrono>

#include "cli/command.h"
#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_trainer.h"
#include "data/tokenizer_training_text.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class TokenizerTrainCommand : public Command {
 public:
  std::string name() const override { return "tokenizer train"; }
  std::string summary() const override { return "Learn a byte-level BPE vocabulary from text"; }
  void declare(Schema& schema) override {
    schema.section("input", "What to learn from");
    schema
        .add("input", &input_, std::vector<std::string>{},
             "JSON lines or plain text; gzip and zstd are unpacked")
        .required()
        .metavar("FILE")
        .completes_file();
    schema
        .add("json_keys", &text_.keys, std::vector<std::string>{"text"},
             "keys of JSON lines that hold the text")
        .metavar("KEY");
    schema
        .add("sample_by", &sample_by_, std::string("document"),
             "what is a text of its own in plain text: a whole file, a paragraph, a line")
        .one_of({"document", "paragraph", "line"});
    schema.section("tokenizer", "What to learn");
    schema
        .add("vocab_size", &training_.vocab_size, std::int64_t{0},
             "pieces in all: 256 bytes, merges and special tokens")
        .required()
        .at_least(257)
        .at_most(static_cast<double>(token_number_limit));
    schema
        .add("special_tokens", &training_.special_tokens, std::vector<std::string>{std::string(end_of_text)},
             "tokens that ordinary text never becomes; numbered last")
        .metavar("TOKEN");
    schema
        .add("min_frequency", &training_.min_frequency, std::int64_t{2},
             "pairs that occur less often make no piece, even if the vocabulary stays smaller")
        .at_least(0);
    schema.section("output", "Where it goes");
    schema
        .add("output", &output_, std::string(),
             "folder for vocab.json, merges.txt and tokenizer.json; made where it is missing")
        .required()
        .metavar("FOLDER")
        .completes_file();
    schema.add("workers", &workers_, std::int64_t{0}, "threads; the result does not depend on them")
        .at_least(0)
        .at_most(1024)
        .default_text("all cores");
    schema.epilogue(
        "Example:\n"
        "  megalith tokenizer train --input book.txt --vocab-size 2048 --output my-tokenizer\n"
        "  megalith tokenizer encode --tokenizer-model my-tokenizer --text 'In the beginning' --show\n");
  }
  int run(Schema& /*schema*/, Log& messages) override {
    const Pretokenizer pretokenizer(CharacterClasses::load());
    check_training_options(training_, pretokenizer);
    const auto start = Clock::now();
    const WordTable words = count(pretokenizer, messages);
    const auto trained = Clock::now();
    std::int64_t shown = 0;
    const BpeVocabulary vocabulary = train_bpe(words, training_, [&](std::int64_t pieces) {
      if (pieces < shown + 64) return;
      shown = pieces;
      messages.progress(format("learning: {} of {} pieces", pieces, training_.vocab_size));
    });
    messages.clear_progress();
    const auto pieces = static_cast<std::int64_t>(vocabulary.pieces.size());
    messages.line(format("learned {} pieces ({} merges) in {:.1f} s", pieces, vocabulary.merges.size(),
                         seconds_since(trained)));
    if (pieces < training_.vocab_size) {
      messages.warn(
          format("the text has no more pairs that occur {} times, so there are {} pieces instead of {}; give "
                 "more text, a smaller --vocab-size or a smaller --min-frequency",
                 std::max<std::int64_t>(training_.min_frequency, 1), pieces, training_.vocab_size));
    }
    save_tokenizer_files(vocabulary, output_);
    messages.line(format("wrote vocab.json, merges.txt and tokenizer.json to {} ({:.1f} s in all)", output_,
                         seconds_since(start)));
    return 0;
  }

 private:
  WordTable count(const Pretokenizer& pretokenizer, Log& messages) {
    text_.files = expand_patterns(input_);
    text_.reading.sample_by = sample_by_ == "line"        ? SampleBy::line
                              : sample_by_ == "paragraph" ? SampleBy::paragraph
                                                          : SampleBy::document;
    ThreadTeam team(workers_ == 0 ? usable_processors() : static_cast<int>(workers_));
    const auto start = Clock::now();
    TrainingTextProgress last;
    WordTable words =
        count_words_of_files(text_, pretokenizer, team, [&](const TrainingTextProgress& progress) {
          last = progress;
          const double seconds = std::max(seconds_since(start), 1e-9);
          const double read = static_cast<double>(progress.read_bytes);
          messages.progress(
              format("counting words: {:.0f} MB{}, {:.0f} MB/s", read / 1e6,
                     progress.total_bytes == 0
                         ? std::string()
                         : format(" of {:.0f}", static_cast<double>(progress.total_bytes) / 1e6),
                     read / 1e6 / seconds));
        });
    messages.clear_progress();
    if (words.entries().empty()) fail(ErrorKind::input, "input", "holds no text; is --json-keys right?");
    messages.line(
        format("read {} documents, {:.1f} MB of text, {} different words, in {:.1f} s on {} threads",
               last.documents, static_cast<double>(last.text_bytes) / 1e6, words.entries().size(),
               seconds_since(start), team.threads()));
    return words;
  }

  std::vector<std::string> input_;
  TrainingText text_;
  std::string sample_by_;
  BpeTrainingOptions training_;
  std::string output_;
  std::int64_t workers_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_tokenizer_train_command() {
  return std::make_unique<TokenizerTrainCommand>();
}

}  // namespace megalith
