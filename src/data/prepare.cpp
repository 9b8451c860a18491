#include "data/prepare.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "data/indexed_dataset.h"

namespace megalith {
namespace {

/// Tokens of a batch's documents for one key.
struct Encoded {
  std::vector<Token> tokens;
  std::vector<std::int32_t> sequence_lengths;
  std::vector<std::uint32_t> document_sequences;

  void clear() {
    tokens.clear();
    sequence_lengths.clear();
    document_sequences.clear();
  }
};

struct Result {
  std::vector<Encoded> keys;
  std::uint64_t text_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::exception_ptr error;
};

class Pipeline {
 public:
  Pipeline(const PrepareOptions& options, const Tokenizer& tokenizer)
      : options_(options),
        tokenizer_(tokenizer),
        reader_(options.files, options.reading),
        window_bytes_(options.reading.batch_bytes * (2 * static_cast<std::size_t>(options.workers) + 2)) {}

  bool run(const std::function<bool(const PrepareProgress&)>& report, PrepareProgress& progress) {
    progress.total_bytes = reader_.total_bytes();
    const TokenStorage storage = storage_for_vocabulary(tokenizer_.vocab_size());
    std::vector<std::unique_ptr<IndexedDatasetBuilder>> builders;
    builders.reserve(options_.keys.size());
    for (const std::string& key : options_.keys) {
      builders.push_back(
          std::make_unique<IndexedDatasetBuilder>(prepared_name(options_.output_prefix, key), storage));
    }
    if (!write_all(builders, report, progress)) return false;
    for (const auto& builder : builders) builder->finish();
    return true;
  }

 private:
  bool write_all(const std::vector<std::unique_ptr<IndexedDatasetBuilder>>& builders,
                 const std::function<bool(const PrepareProgress&)>& report, PrepareProgress& progress) {
    // Whatever ends this function first stops the workers, then joins them.
    struct Stopper {
      Pipeline& pipeline;
      ~Stopper() { pipeline.stop(); }
    };
    std::vector<std::jthread> workers;
    const Stopper stopper{*this};
    workers.reserve(static_cast<std::size_t>(options_.workers));
    for (int i = 0; i < options_.workers; ++i) workers.emplace_back([this] { work(); });
    while (true) {
      std::unique_ptr<Result> result;
      const bool more = take(result);
      if (result && result->error) std::rethrow_exception(result->error);
      if (result) {
        write(*result, builders, progress);
        give_back(std::move(result));
      }
      if (!report(progress)) return stop_and_join(workers);
      if (!more) {
        stop_and_join(workers);
        return true;
      }
    }
  }

  bool stop_and_join(std::vector<std::jthread>& workers) {
    stop();
    workers.clear();
    return false;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }

  /// The next result in order, or null after a short wait (so that an interrupt is noticed). False: that was
  /// the last.
  bool take(std::unique_ptr<Result>& result) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] {
      return results_.contains(next_written_) || (read_all_ && next_written_ == next_read_);
    };
    changed_.wait_for(lock, std::chrono::milliseconds(100), ready);
    const auto found = results_.find(next_written_);
    if (found == results_.end()) return !(read_all_ && next_written_ == next_read_);
    result = std::move(found->second);
    results_.erase(found);
    ++next_written_;
    waiting_bytes_ -= result->text_bytes;
    changed_.notify_all();
    return true;
  }

  /// Results go round, so that their memory is taken once and not by one thread after another.
  void give_back(std::unique_ptr<Result> result) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(result));
  }
  std::unique_ptr<Result> idle_result() {
    std::unique_ptr<Result> result;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        result = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!result) result = std::make_unique<Result>();
    result->keys.resize(options_.keys.size());
    for (Encoded& key : result->keys) key.clear();
    return result;
  }

  void work() {
    TextBatch batch;
    JsonTexts json(options_.keys, options_.invalid_utf8);
    while (true) {
      std::uint64_t number = 0;
      std::unique_ptr<Result> result = idle_result();
      {
        // One worker reads at a time; batches are numbered in the order of the text.
        const std::lock_guard reading(reading_mutex_);
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] {
            return stopping_ || read_all_ || waiting_bytes_ < window_bytes_ || next_written_ == next_read_;
          });
          if (stopping_ || read_all_) return;
          number = next_read_;
        }
        bool more = false;
        try {
          more = reader_.next(batch);
        } catch (...) {
          result->error = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        if (!more) {
          read_all_ = true;
          changed_.notify_all();
          if (!result->error) return;
          batch.bytes.clear();
        }
        ++next_read_;
        result->text_bytes = batch.bytes.size();
        waiting_bytes_ += result->text_bytes;
      }
      result->read_bytes = reader_.consumed_bytes();
      if (!result->error) {
        try {
          encode(batch, json, *result);
        } catch (...) {
          result->error = std::current_exception();
        }
      }
      const std::lock_guard lock(mutex_);
      results_.emplace(number, std::move(result));
      changed_.notify_all();
    }
  }

  void encode(const TextBatch& batch, JsonTexts& json, Result& result) {
    // Text seldom has more tokens; growing step by step would take twice the memory for moments.
    constexpr std::size_t bytes_a_token = 3;
    for (Encoded& key : result.keys)
      key.tokens.reserve(batch.bytes.size() / bytes_a_token / result.keys.size());
    for (const TextBatch::Piece& piece : batch.pieces) {
      const std::string_view text = batch.text(piece);
      if (batch.json) {
        const auto texts = json.read(text, batch.file, piece.line);
        for (std::size_t k = 0; k < texts.size(); ++k)
          encode_document(texts[k], result.keys[k], batch, piece);
      } else {
        for (Encoded& key : result.keys) encode_document({&text, 1}, key, batch, piece);
      }
    }
  }

  void encode_document(std::span<const std::string_view> texts, Encoded& out, const TextBatch& batch,
                       const TextBatch::Piece& piece) {
    std::uint32_t sequences = 0;
    for (const std::string_view text : texts) {
      const std::size_t before = out.tokens.size();
      tokenizer_.append(text, out.tokens);
      const std::size_t count = out.tokens.size() - before;
      if (count == 0) continue;
      if (count >= static_cast<std::size_t>(INT32_MAX)) {
        fail(ErrorKind::input, format("{}:{}", batch.file, piece.line),
             "gives {} tokens in one sequence; the format holds at most {}", count, INT32_MAX - 1);
      }
      out.sequence_lengths.push_back(static_cast<std::int32_t>(count));
      ++sequences;
    }
    if (sequences > 0 && options_.append_eod) {
      out.tokens.push_back(tokenizer_.eod());
      ++out.sequence_lengths.back();
    }
    out.document_sequences.push_back(sequences);
  }

  void write(const Result& result, const std::vector<std::unique_ptr<IndexedDatasetBuilder>>& builders,
             PrepareProgress& progress) {
    for (std::size_t k = 0; k < builders.size(); ++k) {
      const Encoded& key = result.keys[k];
      std::size_t token = 0;
      std::size_t sequence = 0;
      for (const std::uint32_t sequences : key.document_sequences) {
        for (std::uint32_t s = 0; s < sequences; ++s) {
          const auto length = static_cast<std::size_t>(key.sequence_lengths[sequence++]);
          builders[k]->add_sequence(std::span(key.tokens).subspan(token, length));
          token += length;
        }
        builders[k]->end_document();
        if (k == 0 && sequences == 0) ++progress.empty_documents;
      }
      progress.tokens += static_cast<std::int64_t>(token);
    }
    progress.documents = builders.front()->documents();
    progress.text_bytes += result.text_bytes;
    progress.read_bytes = std::max(progress.read_bytes, result.read_bytes);
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  TextReader reader_;
  const std::uint64_t window_bytes_;  ///< text that may wait between reading and writing
  std::mutex reading_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::unique_ptr<Result>> results_;
  std::vector<std::unique_ptr<Result>> idle_;
  std::uint64_t next_read_ = 0;
  std::uint64_t next_written_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  bool read_all_ = false;
  bool stopping_ = false;
};

}  // namespace

std::string prepared_name(const std::string& output_prefix, const std::string& key) {
  return format("{}_{}_document", output_prefix, key);
}

bool prepare_dataset(const PrepareOptions& options, const Tokenizer& tokenizer,
                     const std::function<bool(const PrepareProgress&)>& report, PrepareProgress& result) {
  MEGALITH_ASSERT(!options.keys.empty() && options.workers > 0, "nothing to do");
  if (options.append_eod && tokenizer.eod() < 0) {
    fail(ErrorKind::usage, "--append-eod", "this tokenizer has no end-of-document token; leave the flag out");
  }
  result = {};
  return Pipeline(options, tokenizer).run(report, result);
}

}  // namespace megalith
