#include "train/reporter.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/console_line.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto progress_period = std::chrono::milliseconds(100);

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path tensorboard_folder(const TrainOptions& options, const RunFolder& folder) {
  return options.tensorboard_dir.empty() ? folder.tensorboard()
                                         : std::filesystem::path(options.tensorboard_dir);
}

// Megatron-LM's cap keeps the printed number readable.
double perplexity(double loss) {
  return std::isfinite(loss) ? std::exp(std::min(20.0, loss)) : loss;
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

}  // namespace

Reporter::Reporter(const TrainOptions& options, const GptConfig& config, const RunFolder& folder,
                   const TrainingState& state, Log& log)
    : options_(options), flops_per_sample_(training_flops(config, 1)), log_(log) {
  metrics_.emplace(folder.metrics(), state.iteration);
  if (!options.no_tensorboard) tensorboard_.emplace(tensorboard_folder(options, folder), state.iteration);
}

template <typename Write>
void Reporter::guarded(Write&& write) {
  if (!metrics_) return;
  try {
    write();
  } catch (const Error& error) {
    log_.warn(format("{}. Training goes on without metrics and TensorBoard files.", error.what()));
    metrics_.reset();
    tensorboard_.reset();
  }
}

void Reporter::step_done(TrainingState& state, const StepResult& result, double seconds) {
  IntervalSums& sums = state.interval;
  ++sums.steps;
  if (result.applied) {
    sums.loss_sum += result.loss;
    ++sums.loss_steps;
  } else {
    (std::isfinite(result.loss) ? sums.skipped : sums.nans) += 1;
  }
  sums.seconds += seconds;
  ++sums.timed_steps;
  sums.tokens += result.samples * options_.seq_length;
  sums.flops += flops_per_sample_ * static_cast<double>(result.samples);
  smoothed_step_seconds_ =
      smoothed_step_seconds_ == 0 ? seconds : 0.9 * smoothed_step_seconds_ + 0.1 * seconds;
  if (state.iteration % options_.log_interval == 0 || state.iteration == options_.train_iters) {
    print_interval(state, result);
    sums = {};
  }
  show_progress(state, result);
}

void Reporter::print_interval(TrainingState& state, const StepResult& result) {
  const IntervalSums& sums = state.interval;
  ConsoleRow row;
  row.wall_seconds = wall_seconds();
  row.iteration = state.iteration;
  row.train_iters = options_.train_iters;
  row.consumed_samples = state.consumed_samples;
  row.elapsed_ms = ratio(sums.seconds * 1e3, static_cast<double>(sums.timed_steps));
  row.tflops_per_device = ratio(sums.flops * 1e-12, sums.seconds);
  row.tokens_per_second = ratio(static_cast<double>(sums.tokens), sums.seconds);
  row.learning_rate = state.scheduler.learning_rate();
  row.global_batch_size = result.samples;
  if (sums.loss_steps > 0) row.lm_loss = sums.loss_sum / static_cast<double>(sums.loss_steps);
  if (std::isfinite(result.grad_norm)) row.grad_norm = result.grad_norm;
  row.skipped_iterations = sums.skipped;
  row.nan_iterations = sums.nans;
  log_.line(console_line(row));

  IterationMetrics metrics;
  metrics.iteration = row.iteration;
  metrics.consumed_samples = row.consumed_samples;
  metrics.lm_loss = row.lm_loss;
  metrics.grad_norm = row.grad_norm;
  metrics.learning_rate = row.learning_rate;
  metrics.global_batch_size = row.global_batch_size;
  metrics.elapsed_ms = row.elapsed_ms;
  metrics.tokens_per_second = row.tokens_per_second;
  metrics.tflops_per_device = row.tflops_per_device;
  row_ = metrics;
}

void Reporter::show_progress(const TrainingState& state, const StepResult& result) {
  const Clock::time_point now = Clock::now();
  if (state.iteration >= options_.train_iters) return log_.clear_progress();
  if (now - last_progress_ < progress_period) return;
  last_progress_ = now;
  const double left = smoothed_step_seconds_ * static_cast<double>(options_.train_iters - state.iteration);
  const double rate =
      ratio(static_cast<double>(result.samples * options_.seq_length), smoothed_step_seconds_);
  log_.progress(progress_line(state.iteration, options_.train_iters, result.loss, rate, left, log_.width()));
}

void Reporter::evaluated(const TrainingState& state, double validation_loss, double seconds) {
  log_.line(format(" validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} | took {}",
                   state.iteration, validation_loss, perplexity(validation_loss), duration_text(seconds)));
  if (!row_) {
    row_.emplace();
    row_->iteration = state.iteration;
    row_->consumed_samples = state.consumed_samples;
    row_->learning_rate = state.scheduler.learning_rate();
  }
  row_->validation_loss = validation_loss;
}

void Reporter::write_row(const TrainingState& state) {
  if (!row_ || row_->iteration != state.iteration) return;
  const IterationMetrics row = *row_;
  row_.reset();
  guarded([&] {
    metrics_->append(row);
    if (!tensorboard_) return;
    TensorboardWriter::Scalars scalars;
    if (row.lm_loss) scalars.emplace_back("lm loss", *row.lm_loss);
    if (row.validation_loss) {
      scalars.emplace_back("lm loss validation", *row.validation_loss);
      scalars.emplace_back("lm loss validation ppl", perplexity(*row.validation_loss));
    }
    if (row.grad_norm) scalars.emplace_back("grad-norm", *row.grad_norm);
    if (row.global_batch_size) {
      scalars.emplace_back("learning-rate", row.learning_rate);
      scalars.emplace_back("batch-size", static_cast<double>(*row.global_batch_size));
      scalars.emplace_back("iteration-time", *row.elapsed_ms * 1e-3);
      scalars.emplace_back("tokens-per-second", *row.tokens_per_second);
      scalars.emplace_back("throughput", *row.tflops_per_device);
    }
    tensorboard_->write(row.iteration, wall_seconds(), scalars);
  });
}

void Reporter::test_loss(const TrainingState& state, double loss) {
  log_.line(format(" test loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E}",
                   state.iteration, loss, perplexity(loss)));
  guarded([&] {
    if (tensorboard_) tensorboard_->write(state.iteration, wall_seconds(), {{"lm loss test", loss}});
  });
}

}  // namespace megalith
