// One iteration: read the global batch, run its microbatches forward and backward, update the weights. And
// the same without backward, for evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "train/training_state.h"

namespace megalith {

struct StepResult {
  double loss = 0;  ///< nats per unmasked token of the global batch; with mean-of-microbatch-means, that mean
  double grad_norm = 0;
  bool applied = false;  ///< false: loss or gradient not finite, weights unchanged
  std::int64_t samples = 0;
};

struct StepRules {
  DocumentRules documents;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 0;
  /// true: sum over the unmasked tokens of the global batch / their count; false: Megatron-LM's mean over
  /// microbatches of each one's mean.
  bool per_token_loss = true;
};

/// Trains on samples [state.consumed_samples, + samples). Advances the scheduler where the step was applied;
/// iteration and consumed samples are the caller's. `before_update` is called once, before weights and
/// moments change.
StepResult train_step(
    TrainingState& state, const SampleSource& source, std::int64_t samples, const StepRules& rules,
    const std::function<void()>& before_update = [] {});

/// Mean loss over samples [first, first + iterations * samples), without dropout. `should_stop` is asked
/// before each iteration; nothing is returned where it said yes.
std::optional<double> evaluate_loss(TrainingState& state, const SampleSource& source, std::int64_t first,
                                    std::int64_t iterations, std::int64_t samples, const StepRules& rules,
                                    const std::function<bool()>& should_stop);

}  // namespace megalith
