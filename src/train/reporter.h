// Reporter: everything a run tells while it trains: console lines, the live line, metrics.jsonl, TensorBoard.
#pragma once

#include <chrono>
#include <optional>

#include "core/log.h"
#include "core/options.h"
#include "train/metrics_log.h"
#include "train/run_folder.h"
#include "train/tensorboard_writer.h"
#include "train/train_step.h"

namespace megalith {

class Reporter {
 public:
  /// Cuts metrics and event files of `folder` back to `state.iteration` first.
  Reporter(const TrainOptions& options, const GptConfig& config, const RunFolder& folder,
           const TrainingState& state, Log& log);

  /// Adds a finished step to the interval and prints the line where one is due (every log_interval
  /// iterations, and the last).
  void step_done(TrainingState& state, const StepResult& result, double seconds);
  /// A validation loss of the present iteration.
  void evaluated(const TrainingState& state, double validation_loss, double seconds);
  /// The present iteration's row goes to the files. Call once an iteration, after step_done and evaluated.
  void write_row(const TrainingState& state);
  void test_loss(const TrainingState& state, double loss);

 private:
  void print_interval(TrainingState& state, const StepResult& result);
  void show_progress(const TrainingState& state, const StepResult& result);
  // A full disk must not end a run that could go on: the first failure is reported, the files then stay as
  // they are.
  template <typename Write>
  void guarded(Write&& write);

  const TrainOptions& options_;
  double flops_per_sample_;
  Log& log_;
  std::optional<MetricsLog> metrics_;
  std::optional<TensorboardWriter> tensorboard_;
  std::optional<IterationMetrics> row_;
  std::chrono::steady_clock::time_point last_progress_;
  double smoothed_step_seconds_ = 0;
};

}  // namespace megalith
