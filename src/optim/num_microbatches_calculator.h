// How many samples and microbatches the next step has: constant, or ramped up with the samples consumed, as
// Megatron-LM's num_microbatches_calculator does (--rampup-batch-size START INCREMENT SAMPLES).
#pragma once

#include <cstdint>

#include "core/options.h"

namespace megalith {

class NumMicrobatchesCalculator {
 public:
  /// From resolved options. Raises Error (usage) where a batch size of the ramp cannot be made of whole
  /// microbatches or the increments do not lead from start to global_batch_size. `data_parallel`: ranks that
  /// share a batch.
  explicit NumMicrobatchesCalculator(const TrainOptions& options, std::int64_t data_parallel = 1);

  /// Global batch size of the step that starts after `consumed_samples`:
  /// start + increment * floor(consumed / (samples / number of increments)), and the final size past
  /// `samples`.
  std::int64_t global_batch_size(std::int64_t consumed_samples) const;
  /// Microbatches of that step on each data-parallel rank.
  std::int64_t num_microbatches(std::int64_t consumed_samples) const;
  /// Steps that train_samples give, ramp included.
  std::int64_t iterations_for(std::int64_t train_samples) const;

 private:
  std::int64_t final_ = 0;
  std::int64_t start_ = 0;
  std::int64_t increment_ = 0;
  std::int64_t ramp_samples_ = 0;
  std::int64_t unit_ = 1;  ///< micro_batch_size * data_parallel
};

}  // namespace megalith
