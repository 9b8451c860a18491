// Learning rate and weight decay as functions of the samples consumed, formula for formula Megatron-LM's
// OptimizerParamScheduler. "Steps" are samples: iterations times the global batch size, or samples
// themselves.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/options.h"

namespace megalith {

enum class DecayStyle : std::uint8_t { constant, linear, cosine, inverse_square_root, wsd };
enum class WsdDecayStyle : std::uint8_t { exponential, linear, cosine, minus_sqrt };
enum class WeightDecayStyle : std::uint8_t { constant, linear, cosine };

struct ParamSchedule {
  double init_lr = 0.0;  ///< where warm-up starts
  double max_lr = 0.0;
  double min_lr = 0.0;
  double warmup_steps = 0.0;  ///< may be broken: a fraction of decay_steps
  std::int64_t decay_steps = 1;
  DecayStyle decay_style = DecayStyle::linear;
  std::int64_t wsd_decay_steps = 0;  ///< the last part of decay_steps, where WSD falls
  WsdDecayStyle wsd_decay_style = WsdDecayStyle::exponential;
  double start_weight_decay = 0.0;
  double end_weight_decay = 0.0;
  std::int64_t weight_decay_steps = 1;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::constant;
};

/// From resolved options: sample-based where train_samples is set, else iterations times the global batch
/// size. Raises Error (usage) for values that contradict one another.
ParamSchedule param_schedule(const TrainOptions& options);

/// Learning rate after `steps` samples. Warm-up is linear from init_lr to max_lr and includes its last step;
/// past decay_steps the rate is min_lr (except where constant); in between, r = (steps - warmup) / (decay -
/// warmup):
///   linear 1 - r; cosine (cos(pi r) + 1) / 2; inverse-square-root max(min, max * sqrt(warmup / steps));
///   WSD 1, and in its last wsd_decay_steps with r of that part: linear, cosine as above,
///   exponential 2 * 0.5^r - 1, minus_sqrt 1 - sqrt(r); each scales max_lr - min_lr.
double learning_rate(const ParamSchedule& schedule, std::int64_t steps);

/// Weight decay after `steps` samples, from start to end.
double weight_decay(const ParamSchedule& schedule, std::int64_t steps);

class OptimizerParamScheduler {
 public:
  explicit OptimizerParamScheduler(const ParamSchedule& schedule) : schedule_(schedule) {}

  double learning_rate() const { return megalith::learning_rate(schedule_, steps_); }
  double weight_decay() const { return megalith::weight_decay(schedule_, steps_); }
  /// After an applied update: the samples of its batch.
  void step(std::int64_t samples) { steps_ += samples; }
  std::int64_t steps() const { return steps_; }

  /// What a checkpoint keeps, under Megatron's names (num_steps, max_lr, lr_decay_style ...).
  nlohmann::json state() const;
  /// Continues from a checkpoint. Settings there that differ from this run's are taken with `use_checkpoint`,
  /// ignored with `override_checkpoint`, and else raise one Error (usage) that lists them.
  void load(const nlohmann::json& state, bool override_checkpoint, bool use_checkpoint);

 private:
  ParamSchedule schedule_;
  std::int64_t steps_ = 0;
};

}  // namespace megalith
