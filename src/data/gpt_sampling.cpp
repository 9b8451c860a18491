#include "data/gpt_sampling.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/hash.h"
#include "data/legacy_random.h"

namespace megalith {
namespace {

constexpr std::int64_t most_entries = (std::int64_t{1} << 32) - 2;

std::uint64_t cache_key(const IndexedDataset& dataset, const GptSamplingOptions& options) {
  const std::uint64_t words[] = {1,  // version of the cached arrays
                                 dataset.fingerprint(),
                                 static_cast<std::uint64_t>(options.begin),
                                 static_cast<std::uint64_t>(options.end),
                                 static_cast<std::uint64_t>(options.samples),
                                 static_cast<std::uint64_t>(options.seq_length),
                                 options.seed};
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(words)));
  return hasher.value();
}

}  // namespace

EpochPlan plan_epochs(const GptSamplingOptions& options, std::int64_t tokens_per_epoch,
                      const std::string& place) {
  const std::int64_t length = options.seq_length;
  EpochPlan plan;
  plan.tokens_per_epoch = tokens_per_epoch;
  if (tokens_per_epoch < length + 1) {
    fail(ErrorKind::input, place,
         "the {} split has {} tokens in {} sequences, fewer than one sample of {} (seq_length + 1); give "
         "more data, another "
         "--split, or a smaller --seq-length",
         options.split, tokens_per_epoch, options.end - options.begin, length + 1);
  }
  if (options.samples > 0) {
    if (options.samples > (std::numeric_limits<std::int64_t>::max() - 1) / length) {
      fail(ErrorKind::usage, place, "{} samples of {} tokens are more than 64 bits can count",
           options.samples, length);
    }
    const std::int64_t tokens = options.samples * length + 1;
    plan.epochs = tokens / tokens_per_epoch + (tokens % tokens_per_epoch != 0 ? 1 : 0);
  }
  const std::int64_t sequences = options.end - options.begin;
  if (plan.epochs > most_entries / sequences || plan.epochs * (tokens_per_epoch / length) > most_entries) {
    fail(ErrorKind::input, place,
         "{} samples need {} epochs of the {} split's {} tokens, more than the index can hold (2^32 "
         "entries); give more "
         "data or ask for fewer samples",
         options.samples, plan.epochs, options.split, tokens_per_epoch);
  }
  plan.samples = (plan.epochs * tokens_per_epoch - 1) / length;
  if (plan.epochs > 1) {
    plan.samples_before_last = ((plan.epochs - 1) * tokens_per_epoch - 1) / length;
    const std::int64_t from_last = options.samples - plan.samples_before_last;
    const std::int64_t per_epoch = (tokens_per_epoch - 1) / length;
    plan.separate_last = from_last < static_cast<std::int64_t>(0.80 * static_cast<double>(per_epoch));
  }
  return plan;
}

GptDataset::GptDataset(std::shared_ptr<const IndexedDataset> dataset, const GptSamplingOptions& options,
                       const IndexCache& cache, Log& log)
    : dataset_(std::move(dataset)), options_(options) {
  MEGALITH_ASSERT(
      options_.begin >= 0 && options_.begin < options_.end && options_.end <= dataset_->sequences(),
      format("sequences {} to {} of {}", options_.begin, options_.end, dataset_->sequences()));
  MEGALITH_ASSERT(options_.seq_length > 0, "seq_length");
  if (options_.end > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorKind::input, dataset_->prefix(), "has {} sequences; the sample index holds at most {}",
         options_.end, std::numeric_limits<std::int32_t>::max());
  }
  plan_ = plan_epochs(options_, dataset_->count_tokens(options_.begin, options_.end), dataset_->prefix());

  const std::string kind = "GPTDataset-" + options_.split;
  const std::uint64_t key = cache_key(*dataset_, options_);
  if (!cache.load(kind, key, 3, arrays_, log)) {
    build(arrays_);
    cache.store(kind, key, arrays_, log);
  }
  document_index_ = arrays_.get<std::int32_t>(0);
  starts_ = arrays_.get<Start>(1);
  shuffle_index_ = arrays_.get<std::uint32_t>(2);
  MEGALITH_ASSERT(std::ssize(document_index_) == plan_.epochs * (options_.end - options_.begin) &&
                      std::ssize(starts_) == (plan_.samples + stride - 1) / stride &&
                      std::ssize(shuffle_index_) == plan_.samples,
                  "sizes of the sample index");
}

void GptDataset::build(IndexArrays& arrays) const {
  LegacyRandom random(options_.seed);
  const std::int64_t sequences = options_.end - options_.begin;

  const auto documents = arrays.allocate<std::int32_t>(static_cast<std::size_t>(plan_.epochs * sequences));
  for (std::size_t i = 0; i < documents.size(); ++i) {
    documents[i] = static_cast<std::int32_t>(options_.begin + static_cast<std::int64_t>(i) % sequences);
  }
  if (plan_.separate_last) {
    const auto first = static_cast<std::size_t>((plan_.epochs - 1) * sequences);
    random.shuffle(documents.first(first));
    random.shuffle(documents.subspan(first));
  } else {
    random.shuffle(documents);
  }

  const auto starts = arrays.allocate<Start>(static_cast<std::size_t>((plan_.samples + stride - 1) / stride));
  std::size_t position = 0;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    // The end of a sequence is the beginning of the next that is not empty.
    while (offset >= dataset_->length(documents[position])) {
      offset -= dataset_->length(documents[position]);
      ++position;
    }
    starts[i] = {static_cast<std::uint32_t>(position), static_cast<std::int32_t>(offset)};
    offset += stride * options_.seq_length;
  }

  const auto shuffle = arrays.allocate<std::uint32_t>(static_cast<std::size_t>(plan_.samples));
  std::iota(shuffle.begin(), shuffle.end(), 0U);
  if (plan_.separate_last) {
    const auto first = static_cast<std::size_t>(plan_.samples_before_last);
    random.shuffle(shuffle.first(first));
    random.shuffle(shuffle.subspan(first));
  } else {
    random.shuffle(shuffle);
  }
}

void GptDataset::read(std::int64_t index, std::span<Token> tokens) const {
  MEGALITH_ASSERT(index >= 0 && index < plan_.samples, format("sample {} of {}", index, plan_.samples));
  MEGALITH_ASSERT(std::ssize(tokens) == options_.seq_length + 1, format("room for {} tokens", tokens.size()));
  const std::int64_t sample = shuffle_index_[static_cast<std::size_t>(index)];
  const Start start = starts_[static_cast<std::size_t>(sample / stride)];
  std::size_t position = start.position;
  std::int64_t offset = start.offset + (sample % stride) * options_.seq_length;
  std::size_t done = 0;
  while (done < tokens.size()) {
    MEGALITH_ASSERT(position < document_index_.size(), "a sample runs past the last document");
    const std::int32_t sequence = document_index_[position];
    const std::int64_t length = dataset_->length(sequence);
    if (offset >= length) {
      offset -= length;
      ++position;
      continue;
    }
    const auto count =
        std::min<std::int64_t>(length - offset, std::ssize(tokens) - static_cast<std::int64_t>(done));
    dataset_->read(sequence, offset, tokens.subspan(done, static_cast<std::size_t>(count)),
                   options_.vocab_size);
    done += static_cast<std::size_t>(count);
    offset += count;
  }
}

}  // namespace megalith
