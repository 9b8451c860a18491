// The order of a GPT's training samples over one indexed dataset, the same for a seed as Megatron-LM's:
// the sequences of a split, repeated over the epochs that are needed, are shuffled and laid end to end;
// sample i begins seq_length * i tokens into that row and is seq_length + 1 long; then the samples are
// shuffled. Where the last epoch gives less than 80 % of an epoch's samples it is shuffled apart from the
// others, at both levels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/log.h"
#include "data/dataset.h"
#include "data/index_cache.h"
#include "data/indexed_dataset.h"

namespace megalith {

/// What the order depends on.
struct GptSamplingOptions {
  std::string split;       ///< "train", "valid", "test": for messages and file names
  std::int64_t begin = 0;  ///< sequences [begin, end) of the dataset
  std::int64_t end = 0;
  std::int64_t samples = -1;  ///< at least so many; -1: as many as one epoch gives
  std::int64_t seq_length = 0;
  std::uint32_t seed = 0;
  std::int64_t vocab_size = 0;  ///< tokens must be below it; 0: not checked
};

/// How many epochs are needed and how the last one is treated.
struct EpochPlan {
  std::int64_t tokens_per_epoch = 0;
  std::int64_t epochs = 1;
  bool separate_last = false;
  std::int64_t samples_before_last = 0;  ///< used where separate_last
  std::int64_t samples = 0;              ///< whole samples in all epochs
};

/// Raises Error (input) where an epoch has no whole sample, or where the indices would have over 2^32
/// entries.
EpochPlan plan_epochs(const GptSamplingOptions& options, std::int64_t tokens_per_epoch,
                      const std::string& place);

/// The samples of one split of one dataset. The three indices are built, or taken from the cache.
class GptDataset : public SampleSource {
 public:
  GptDataset(std::shared_ptr<const IndexedDataset> dataset, const GptSamplingOptions& options,
             const IndexCache& cache, Log& log);

  std::int64_t size() const override { return plan_.samples; }
  void read(std::int64_t index, std::span<Token> tokens) const override;
  const EpochPlan& plan() const { return plan_; }

 private:
  /// Where in the row of shuffled sequences a sample begins. Kept for every stride-th sample.
  struct Start {
    std::uint32_t position;  ///< into the document index
    std::int32_t offset;     ///< tokens into that sequence
  };
  static constexpr std::int64_t stride = 16;

  void build(IndexArrays& arrays) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  GptSamplingOptions options_;
  EpochPlan plan_;
  IndexArrays arrays_;
  std::span<const std::int32_t> document_index_;
  std::span<const Start> starts_;
  std::span<const std::uint32_t> shuffle_index_;
};

}  // namespace megalith
