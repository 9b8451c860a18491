#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/philox.h"
#include "data/blending.h"
#include "data/gpt_sampling.h"
#include "data/index_cache.h"
#include "data/indexed_dataset.h"

namespace megalith {
namespace {

constexpr std::array<std::string_view, 3> split_names = {"train", "valid", "test"};
// Without --data-cache-path, an index that is built again in a moment is not worth a file beside the user's
// data.
constexpr std::int64_t sequences_worth_caching = 100'000;

/// Random tokens, keyed by (seed, split, sample, place): for timing and dry runs.
class MockDataset : public SampleSource {
 public:
  MockDataset(std::uint64_t seed, std::string_view split, std::int64_t samples, std::int64_t vocab_size)
      : key_(philox_key(seed, format("mock_data:{}", split))), samples_(samples), vocab_size_(vocab_size) {}

  std::int64_t size() const override { return samples_; }
  void read(std::int64_t index, std::span<Token> tokens) const override {
    MEGALITH_ASSERT(index >= 0 && index < samples_, format("sample {} of {}", index, samples_));
    const auto sample = static_cast<std::uint64_t>(index);
    PhiloxCounter words{};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i % 4 == 0) {
        words = philox({static_cast<std::uint32_t>(i / 4), 0, static_cast<std::uint32_t>(sample),
                        static_cast<std::uint32_t>(sample >> 32)},
                       key_);
      }
      // The upper half of word * vocab_size: even to 1 part in 2^32 / vocab_size.
      tokens[i] =
          static_cast<Token>((std::uint64_t{words[i % 4]} * static_cast<std::uint64_t>(vocab_size_)) >> 32);
    }
  }

 private:
  PhiloxKey key_;
  std::int64_t samples_;
  std::int64_t vocab_size_;
};

class Builder {
 public:
  Builder(const DatasetOptions& options, Log& log)
      : options_(options),
        log_(log),
        samples_{options.train_samples, options.valid_samples, options.test_samples} {
    if (options.seq_length < 1)
      fail(ErrorKind::usage, "--seq-length", "is {}; expected at least 1", options.seq_length);
    if (options.seed > std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorKind::usage, "--seed", "is {}; the sample order takes a seed of 0 to 4294967295",
           options.seed);
    }
  }

  DatasetSplits build() {
    std::array<std::unique_ptr<SampleSource>, 3> sets;
    const std::array<const std::vector<std::string>*, 3> per_split = {
        &options_.train_data_path, &options_.valid_data_path, &options_.test_data_path};
    const bool any_per_split =
        std::any_of(per_split.begin(), per_split.end(), [](const auto* paths) { return !paths->empty(); });
    if (options_.mock_data) {
      if (options_.vocab_size < 1) {
        fail(ErrorKind::usage, "--mock-data",
             "needs to know the vocabulary; give --vocab-size or a tokenizer");
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (samples_[i] <= 0) continue;
        sets[i] =
            std::make_unique<MockDataset>(options_.seed, split_names[i], samples_[i], options_.vocab_size);
      }
    } else if (any_per_split) {
      if (!options_.data_path.empty()) {
        fail(ErrorKind::usage, "--data-path",
             "excludes --train-data-path, --valid-data-path and --test-data-path");
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (per_split[i]->empty() || samples_[i] <= 0) continue;
        SplitFractions whole;
        whole[i] = {0.0, 1.0};
        Blend blend = parse_blend(*per_split[i], format("--{}-data-path", split_names[i]));
        if (blend.prefixes.size() == 1) blend.weights.clear();
        sets[i] = build_split(blend, whole, i);
      }
      if (samples_[0] > 0 && !sets[0]) {
        fail(ErrorKind::usage, "--train-data-path", "is missing, though training samples are needed");
      }
    } else {
      if (options_.data_path.empty()) {
        fail(ErrorKind::usage, "--data-path",
             "is missing; give the path of a prepared dataset without .bin (see megalith data prepare), or "
             "--mock-data");
      }
      const Blend blend = parse_blend(options_.data_path, "--data-path");
      const SplitFractions fractions = parse_split(options_.split);
      if (samples_[0] > 0 && !fractions[0]) {
        fail(ErrorKind::usage, "--split", "{} leaves nothing for training", options_.split);
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (samples_[i] > 0 && fractions[i]) sets[i] = build_split(blend, fractions, i);
      }
    }
    return {std::move(sets[0]), std::move(sets[1]), std::move(sets[2])};
  }

 private:
  std::shared_ptr<const IndexedDataset> open(const std::string& prefix) {
    auto& slot = opened_[dataset_prefix(prefix)];
    if (!slot) slot = std::make_shared<const IndexedDataset>(prefix);
    return slot;
  }

  /// Null where the test set, which nobody needs in order to train, has no sample.
  std::unique_ptr<GptDataset> build_one(const std::string& prefix, const SplitFractions& fractions,
                                        std::size_t split, std::int64_t samples) {
    const std::shared_ptr<const IndexedDataset> dataset = open(prefix);
    GptSamplingOptions sampling;
    sampling.split = split_names[split];
    sampling.begin = split_boundary(fractions[split]->first, dataset->sequences());
    sampling.end = split_boundary(fractions[split]->second, dataset->sequences());
    sampling.samples = samples;
    sampling.seq_length = options_.seq_length;
    sampling.seed = static_cast<std::uint32_t>(options_.seed);
    sampling.vocab_size = options_.vocab_size;
    const std::int64_t tokens = dataset->count_tokens(sampling.begin, sampling.end);
    if (split == 2 && tokens < options_.seq_length + 1) {
      log_.warn(format("{}: no test set: the split {} leaves it {} tokens, fewer than one sample of {}",
                       dataset->prefix(), options_.split, tokens, options_.seq_length + 1));
      return nullptr;
    }
    if (sampling.begin >= sampling.end) {
      fail(ErrorKind::input, dataset->prefix(),
           "the {} split of {} gets none of the {} sequences; whole sequences (documents) are split, so give "
           "more "
           "documents or another --split",
           sampling.split, options_.split, dataset->sequences());
    }
    std::filesystem::path folder = options_.data_cache_path;
    if (folder.empty() && dataset->sequences() >= sequences_worth_caching) {
      folder = std::filesystem::path(dataset->prefix()) / "cache" / "GPTDataset_indices";
    }
    auto source = std::make_unique<GptDataset>(dataset, sampling, IndexCache(folder), log_);
    const EpochPlan& plan = source->plan();
    log_.line(format("{}: {} split: {} sequences, {} tokens, {} samples from {} epoch{}", dataset->prefix(),
                     sampling.split, sampling.end - sampling.begin, plan.tokens_per_epoch, plan.samples,
                     plan.epochs, plan.epochs == 1 ? "" : "s"));
    return source;
  }

  std::unique_ptr<SampleSource> build_split(const Blend& blend, const SplitFractions& fractions,
                                            std::size_t split) {
    const std::int64_t wanted = samples_[split];
    if (blend.prefixes.size() == 1 && blend.weights.empty()) {
      return build_one(blend.prefixes[0], fractions, split, wanted);
    }
    if (blend.prefixes.size() > 32766) {
      fail(ErrorKind::usage, "--data-path", "names {} datasets; at most 32766 can be blended",
           blend.prefixes.size());
    }
    std::vector<std::unique_ptr<SampleSource>> sources;
    std::vector<double> weights = normalized(blend.weights);
    std::int64_t samples = 0;
    for (std::size_t d = 0; d < blend.prefixes.size(); ++d) {
      const std::int64_t request = weights.empty() ? -1 : blend_request(wanted, weights[d]);
      if (!weights.empty()) samples += blend_share(wanted, weights[d]);
      auto source = build_one(blend.prefixes[d], fractions, split, request);
      if (!source) return nullptr;
      sources.push_back(std::move(source));
    }
    if (weights.empty()) {
      for (const auto& source : sources) {
        samples += source->size();
        weights.push_back(static_cast<double>(source->size()));
      }
      if (samples < wanted) {
        log_.warn(format(
            "{} split: a blend without weights is one epoch of each dataset, {} samples, fewer than the {} "
            "wanted; give weights to repeat data",
            split_names[split], samples, wanted));
      }
      samples = std::min(samples, wanted);
    }
    // Upstream normalises a second time here, which can change the last bit.
    weights = normalized(weights);
    return std::make_unique<BlendedDataset>(std::move(sources), weights, samples,
                                            format("{} split", split_names[split]));
  }

  const DatasetOptions& options_;
  Log& log_;
  std::array<std::int64_t, 3> samples_;
  std::map<std::string, std::shared_ptr<const IndexedDataset>> opened_;
};

}  // namespace

DatasetSplits build_datasets(const DatasetOptions& options, Log& log) {
  return Builder(options, log).build();
}

}  // namespace megalith
