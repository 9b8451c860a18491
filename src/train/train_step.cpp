#include "train/train_step.h"

#include <cmath>

#include "core/error.h"

namespace megalith {
namespace {

std::int64_t unmasked_in(const HostBatch& batch, std::int64_t first_row, std::int64_t rows) {
  double count = 0;
  for (std::int64_t row = first_row; row < first_row + rows; ++row)
    count += batch.loss_mask[static_cast<std::size_t>(row)];
  return static_cast<std::int64_t>(count);
}

double inverse_or_zero(double count) {
  return count > 0 ? 1.0 / count : 0.0;
}

HostBatch read_traced(Device& device, const SampleSource& source, std::int64_t first, std::int64_t samples,
                      const StepRules& rules) {
  const Region region(device, "data");
  return read_batch(source, first, samples, rules.sequence, rules.documents);
}

Tensor load_words_traced(TrainingState& state, HostBatch& host) {
  const Region region(state.store.device(), "data");
  return state.batch.load_words(host);
}

const MicroBatch& load_traced(TrainingState& state, const HostBatch& host, std::int64_t first) {
  const Region region(state.store.device(), "data");
  return state.batch.load(host, first);
}

}  // namespace

StepResult train_step(TrainingState& state, const SampleSource& source, std::int64_t samples,
                      const StepRules& rules, const std::function<void()>& before_update) {
  Device& device = state.store.device();
  HostBatch host = read_traced(device, source, state.consumed_samples, samples, rules);
  const std::int64_t microbatches = samples / rules.micro_batch;
  const double whole_scale = inverse_or_zero(static_cast<double>(host.unmasked));
  state.store.zero_gradients(load_words_traced(state, host));
  double loss = 0;
  if (rules.per_token_loss) {
    state.batch.clear_loss_sum();
    state.batch.set_gradient_scale(whole_scale);
  }
  for (std::int64_t m = 0; m < microbatches; ++m) {
    double scale = 0;
    if (!rules.per_token_loss) {
      const std::int64_t rows = rules.micro_batch * rules.sequence;
      scale = inverse_or_zero(static_cast<double>(unmasked_in(host, m * rows, rows) * microbatches));
      state.batch.clear_loss_sum();
      state.batch.set_gradient_scale(scale);
    }
    const MicroBatch& batch = load_traced(state, host, m * rules.micro_batch);
    state.stage.forward(0, batch, Pass::training);
    state.stage.backward(0, batch);
    if (!rules.per_token_loss) loss += state.batch.loss_sum() * scale;
  }
  if (rules.per_token_loss) loss = state.batch.loss_sum() * whole_scale;

  StepResult result;
  result.loss = loss;
  result.samples = samples;
  // A loss that is not finite never reaches the weights, whatever the gradients look like.
  if (!std::isfinite(loss)) {
    result.grad_norm = std::nan("");
    return result;
  }
  const Region region(device, "optimizer");
  before_update();
  const OptimizerResult update =
      state.optimizer.step(state.scheduler.learning_rate(), state.scheduler.weight_decay());
  result.grad_norm = update.grad_norm;
  result.applied = update.applied;
  if (result.applied) state.scheduler.step(samples);
  return result;
}

std::optional<double> evaluate_loss(TrainingState& state, const SampleSource& source, std::int64_t first,
                                    std::int64_t iterations, std::int64_t samples, const StepRules& rules,
                                    const std::function<bool()>& should_stop) {
  double loss = 0;
  double tokens = 0;
  for (std::int64_t i = 0; i < iterations; ++i) {
    if (should_stop()) return {};
    const HostBatch host = read_traced(state.store.device(), source, first + i * samples, samples, rules);
    state.batch.clear_loss_sum();
    for (std::int64_t m = 0; m < samples / rules.micro_batch; ++m) {
      state.stage.forward(0, load_traced(state, host, m * rules.micro_batch), Pass::evaluation);
    }
    loss += state.batch.loss_sum();
    tokens += static_cast<double>(host.unmasked);
  }
  return loss * inverse_or_zero(tokens);
}

}  // namespace megalith
