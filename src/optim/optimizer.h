// Optimizer: turns the gradients of a ParameterStore into new weights. AdamW or SGD over the parameter table,
// with clipping by the global norm (Pascanu et al. 2013).
//
// The norm adds the squares of fixed blocks in the table's order, a tied weight once, padding never; so it
// does not depend on how parameters are laid out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/options.h"
#include "device/device.h"
#include "model/parameter_store.h"

namespace megalith {

struct OptimizerConfig {
  enum class Kind : std::uint8_t { adamw, sgd } kind = Kind::adamw;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.0;   ///< of SGD
  double clip_grad = 1.0;  ///< largest global norm; 0: no clipping
};

/// Raises Error (usage) for an unknown optimizer or a value out of range.
OptimizerConfig optimizer_config(const TrainOptions& options);

struct OptimizerResult {
  double grad_norm = 0.0;  ///< before clipping
  bool applied = false;    ///< false: the norm was not finite and no weight has changed
};

class Optimizer {
 public:
  /// State starts at zero. Takes all memory here, none in steps. `store` outlives the optimizer.
  Optimizer(ParameterStore& store, const OptimizerConfig& config);

  /// One update from the gradients in the store (which stay, scaled by nothing, until zero_gradients). Waits
  /// for the device. Where the gradients' norm is not finite, weights, state and the step count stay as they
  /// were.
  OptimizerResult step(double learning_rate, double weight_decay);

  /// Updates applied so far: t of AdamW's bias correction.
  std::int64_t step_count() const { return step_count_; }
  void set_step_count(std::int64_t count) { step_count_ = count; }

  /// State by name, owners only: "optimizer.exp_avg.NAME" and "optimizer.exp_avg_sq.NAME", or
  /// "optimizer.momentum_buffer.NAME". Master weights are ParameterStore::weights().
  std::vector<LogicalTensor> state() const;

  std::size_t bytes() const { return arena_.bytes(); }

 private:
  struct Slot {
    int row = 0;
    Tensor first;            ///< exp_avg or momentum_buffer, local shape; absent for SGD without momentum
    Tensor second;           ///< exp_avg_sq
    std::int64_t block = 0;  ///< first of its norm partials
  };
  void compute_clip_factor();
  void update(const Slot& slot, double weight_decay);

  ParameterStore& store_;
  Device& device_;
  OptimizerConfig config_;
  Arena arena_;
  std::vector<Slot> slots_;
  Tensor partials_;
  Tensor learning_rate_;
  Tensor step_;
  Tensor inverse_loss_scale_;
  Tensor norm_;
  Tensor gradient_scale_;
  std::int64_t step_count_ = 0;
};

/// Bytes of an Optimizer for this table, without a device.
std::size_t optimizer_bytes(const ParameterTable& table, const OptimizerConfig& config);

}  // namespace megalith
