// megalith data prepare: text to token files, with the flags and file names of Megatron-LM's preprocess_data.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/tokenizer_flags.h"
#include "core/error.h"
#include "core/stop_request.h"
#include "data/indexed_dataset.h"
#include "data/prepare.h"
#include "device/parallel_for.h"

namespace megalith {
namespace {

constexpr int signal_status = 128;

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0));
  if (whole < 60) return format("{}s", whole);
  if (whole < 3600) return format("{}m{:02}s", whole / 60, whole % 60);
  return format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

/// Temporary files of runs that were killed: PATH.tmp-PID of a process that is no more.
void remove_leftovers(const std::string& path) {
  const std::filesystem::path target(path);
  const std::string start = target.filename().string() + ".tmp-";
  const std::filesystem::path folder =
      target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start)) continue;
    const std::string digits = name.substr(start.size());
    if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (::kill(std::stoi(digits), 0) != 0 && errno == ESRCH) std::filesystem::remove(entry.path(), ignored);
  }
}

/// Live line on a terminal; elsewhere a line every log_interval documents, but not more often than every two
/// seconds.
class ProgressReport {
 public:
  ProgressReport(Log& log, std::int64_t log_interval) : log_(log), log_interval_(log_interval) {}

  void update(const PrepareProgress& now) {
    const auto moment = Clock::now();
    if (log_.is_terminal()) {
      if (moment - last_ < std::chrono::milliseconds(100)) return;
      last_ = moment;
      log_.progress(live_line(now));
      return;
    }
    if (now.documents - said_documents_ < log_interval_ || moment - last_ < std::chrono::seconds(2)) return;
    last_ = moment;
    said_documents_ = now.documents;
    const double seconds = elapsed();
    log_.line(format("Processed {} documents ({:.1f} docs/s, {:.2f} MB/s, {:.1f} %, {} left).", now.documents,
                     static_cast<double>(now.documents) / seconds,
                     static_cast<double>(now.text_bytes) / seconds / 1e6, share(now) * 100,
                     time_text(remaining(now))));
  }
  double elapsed() const {
    return std::max(std::chrono::duration<double>(Clock::now() - start_).count(), 1e-6);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double share(const PrepareProgress& now) {
    if (now.total_bytes == 0) return 0;
    return std::min(1.0, static_cast<double>(now.read_bytes) / static_cast<double>(now.total_bytes));
  }
  double remaining(const PrepareProgress& now) const {
    const double done = share(now);
    return done > 0 ? elapsed() * (1 - done) / done : 0;
  }
  std::string live_line(const PrepareProgress& now) const {
    const double done = share(now);
    std::string tail = format(" {:5.1f} %  {}  {:.1f} MB/s  {} docs  {} tokens  ETA {}", done * 100,
                              bytes_text(static_cast<double>(now.text_bytes)),
                              static_cast<double>(now.text_bytes) / elapsed() / 1e6, now.documents,
                              now.tokens, time_text(remaining(now)));
    const int width = std::clamp(log_.width() - static_cast<int>(tail.size()) - 3, 0, 40);
    if (width < 5) return tail;
    const auto filled = static_cast<std::size_t>(done * width);
    return "[" + std::string(filled, '#') + std::string(static_cast<std::size_t>(width) - filled, '.') + "]" +
           tail;
  }

  Log& log_;
  std::int64_t log_interval_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  std::int64_t said_documents_ = 0;
};

class DataPrepareCommand : public Command {
 public:
  std::string name() const override { return "data prepare"; }
  std::string summary() const override { return "Tokenize text into .bin/.idx files for training"; }

  void declare(Schema& schema) override {
    schema.section("input", "What to read");
    schema
        .add("input", &input_, std::vector<std::string>{},
             "Text files, plain, gzip or zstd; patterns with * ? [ too")
        .required()
        .metavar("FILE")
        .completes_file();
    schema
        .add("input_format", &input_format_, std::string("auto"),
             "jsonl: an object on each line; text: plain text; auto: by file name, else by the first "
             "character")
        .one_of({"auto", "jsonl", "text"});
    schema
        .add("json_keys", &json_keys_, std::vector<std::string>{"text"},
             "Keys that hold text; each gets a pair of files of its own")
        .metavar("KEY");
    schema
        .add("sample_by", &sample_by_, std::string("document"),
             "What makes a document of plain text: a whole file (document), text between blank lines, or a "
             "line")
        .one_of({"document", "paragraph", "line"});
    schema
        .add("invalid_utf8", &invalid_utf8_, std::string("error"),
             "Bytes in JSON that are no UTF-8: stop with an error, or replace them with U+FFFD")
        .one_of({"error", "replace"});
    schema
        .add("max_document_bytes", &max_document_bytes_, std::int64_t{256} << 20,
             "Longest document or line that is accepted, in bytes")
        .at_least(1)
        .at_most(double{std::int64_t{1} << 34});

    declare_tokenizer_flags(schema, tokenizer_);
    schema.add("append_eod", &append_eod_, false, "Append the end-of-document token to each document");

    schema.section("output", "What to write");
    schema
        .add("output_prefix", &output_prefix_, std::string(),
             "P gives P_KEY_document.bin and P_KEY_document.idx")
        .required()
        .metavar("P");
    schema.add("overwrite", &overwrite_, true,
               "Replace files of these names; they stay until the new ones are whole");

    schema.section("runtime", "How to run");
    schema.add("workers", &workers_, std::int64_t{0}, "Threads that tokenize; 0: one for each core")
        .at_least(0)
        .at_most(1024);
    schema
        .add("log_interval", &log_interval_, std::int64_t{1000},
             "Documents between progress lines where standard error is no terminal")
        .at_least(1);
    const std::string pipeline = "all threads work on one stream of documents, in order";
    schema.foreign_flags({
        {"partitions", 1, false, pipeline},
        {"keep-sequential-samples", 0, false, pipeline},
        {"dataset-impl", 1, false, "files are always memory-mapped"},
        {"make-vocab-size-divisible-by", 1, false, "token files do not depend on padding"},
        {"vocab-extra-ids", 1, false, "no extra token numbers are used here"},
        {"lang", 1, false, "it only concerns --split-sentences"},
        {"keep-newlines", 0, false, "it only concerns --split-sentences; newlines are always kept"},
        {"split-sentences", 0, true, "sentences are not split here; GPT training needs none"},
        {"find-optimal-num-workers", 0, true, "leave it out: --workers 0 uses every core"},
        {"workers-to-check", -1, false, "--workers 0 uses every core"},
        {"max-documents", 1, false, "it only concerns --find-optimal-num-workers"},
        {"performance-dir", 1, false, "it only concerns --find-optimal-num-workers"},
    });
    schema.epilogue(
        "Examples\n"
        "  megalith data prepare --input corpus.jsonl.zst --output-prefix corpus --append-eod \\\n"
        "      --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt\n"
        "  megalith data prepare --input 'books/*.txt' --output-prefix books --append-eod \\\n"
        "      --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer.json\n");
  }

  int run(Schema& /*schema*/, Log& messages) override {
    // Before any thread exists, so that every thread leaves these signals to this object.
    const StopRequest stop;
    const std::unique_ptr<Tokenizer> tokenizer = load_chosen_tokenizer(tokenizer_);
    const PrepareOptions options = prepare_options();
    for (const std::string& key : options.keys) {
      const std::string prefix = prepared_name(options.output_prefix, key);
      for (const std::string suffix : {".bin", ".idx"}) {
        std::error_code code;
        if (!overwrite_ && std::filesystem::exists(prefix + suffix, code)) {
          fail(ErrorKind::usage, "--no-overwrite", "{} exists; remove it or choose another --output-prefix",
               prefix + suffix);
        }
        remove_leftovers(prefix + suffix);
      }
    }
    messages.line(format("Reading {} file{} with {} thread{}; vocabulary {}, stored as {}.",
                         options.files.size(), options.files.size() == 1 ? "" : "s", options.workers,
                         options.workers == 1 ? "" : "s", tokenizer->vocab_size(),
                         name_of(storage_for_vocabulary(tokenizer->vocab_size()))));
    if (!append_eod_) {
      messages.warn(
          "documents will run into each other; --append-eod puts the end-of-document token between them");
    }

    ProgressReport report(messages, log_interval_);
    PrepareProgress result;
    const bool whole = prepare_dataset(
        options, *tokenizer,
        [&](const PrepareProgress& now) {
          report.update(now);
          return stop.signal() == 0;
        },
        result);
    messages.clear_progress();
    if (!whole) {
      messages.line(format("Interrupted after {} documents; nothing was written.", result.documents));
      return signal_status + stop.signal();
    }
    summarize(options, result, report.elapsed(), messages);
    return 0;
  }

 private:
  PrepareOptions prepare_options() const {
    PrepareOptions options;
    options.files = expand_patterns(input_);
    options.reading.format = input_format_ == "jsonl"  ? TextFormat::json_lines
                             : input_format_ == "text" ? TextFormat::plain
                                                       : TextFormat::automatic;
    options.reading.sample_by = sample_by_ == "line"        ? SampleBy::line
                                : sample_by_ == "paragraph" ? SampleBy::paragraph
                                                            : SampleBy::document;
    options.reading.max_document_bytes = static_cast<std::uint64_t>(max_document_bytes_);
    options.invalid_utf8 = invalid_utf8_ == "replace" ? InvalidUtf8::replace : InvalidUtf8::refuse;
    options.keys = json_keys_;
    for (std::size_t i = 0; i < options.keys.size(); ++i) {
      if (options.keys[i].empty() || options.keys[i].find('/') != std::string::npos) {
        fail(ErrorKind::usage, "--json-keys", "\"{}\" cannot be part of a file name", options.keys[i]);
      }
      if (std::count(options.keys.begin(), options.keys.end(), options.keys[i]) > 1) {
        fail(ErrorKind::usage, "--json-keys", "\"{}\" is named twice", options.keys[i]);
      }
    }
    if (options.keys.empty()) fail(ErrorKind::usage, "--json-keys", "is empty; give at least one key");
    options.output_prefix = output_prefix_;
    options.append_eod = append_eod_;
    options.workers = workers_ > 0 ? static_cast<int>(workers_) : usable_processors();
    return options;
  }

  static void summarize(const PrepareOptions& options, const PrepareProgress& result, double seconds,
                        Log& messages) {
    std::string names;
    std::uint64_t written = 0;
    for (const std::string& key : options.keys) {
      const std::string prefix = prepared_name(options.output_prefix, key);
      names += format("{}{}.bin/.idx", names.empty() ? "" : ", ", prefix);
      std::error_code ignored;
      written += std::filesystem::file_size(prefix + ".bin", ignored);
    }
    std::puts(format("{}: {} documents ({} empty), {} tokens ({} bytes), from {} bytes of text ({:.2f} bytes "
                     "a token) in "
                     "{:.1f} s: {:.2f} MB/s",
                     names, result.documents, result.empty_documents, result.tokens, written,
                     result.text_bytes,
                     result.tokens == 0
                         ? 0.0
                         : static_cast<double>(result.text_bytes) / static_cast<double>(result.tokens),
                     seconds, static_cast<double>(result.text_bytes) / seconds / 1e6)
                  .c_str());
    const std::int64_t usable = result.documents - result.empty_documents;
    if (usable < 20) {
      messages.line(format(
          "note: {} document{}: --split cuts between documents, so a validation set may come out empty. "
          "Plain text gives more with --sample-by paragraph.",
          usable, usable == 1 ? "" : "s"));
    }
  }

  std::vector<std::string> input_;
  std::string input_format_;
  std::vector<std::string> json_keys_;
  std::string sample_by_;
  std::string invalid_utf8_;
  std::int64_t max_document_bytes_ = 0;
  TokenizerOptions tokenizer_;
  bool append_eod_ = false;
  std::string output_prefix_;
  bool overwrite_ = true;
  std::int64_t workers_ = 0;
  std::int64_t log_interval_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_data_prepare_command() {
  return std::make_unique<DataPrepareCommand>();
}

}  // namespace megalith
