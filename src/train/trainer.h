// The training loop. Read run() first: it is the whole life of a run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/log.h"
#include "core/options.h"
#include "core/stop_request.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "device/device.h"
#include "train/profiler.h"
#include "train/reporter.h"
#include "train/run_folder.h"
#include "train/run_saver.h"
#include "train/train_checkpoint.h"
#include "train/train_step.h"
#include "train/training_state.h"

namespace megalith {

/// Why a run ended.
enum class RunEnd : std::uint8_t { finished, exit_interval, exit_duration, signal };

struct RunResult {
  RunEnd end = RunEnd::finished;
  int signal = 0;
  std::int64_t iteration = 0;
  std::optional<double> validation_loss;  ///< of the last evaluation
};

class Trainer {
 public:
  /// `options` are resolved (core/train_schema.h) and outlive the trainer; `effective_config` is saved with
  /// the run. Opens the tokenizer and checks that the model fits together; takes no device memory yet.
  Trainer(const TrainOptions& options, std::string effective_config, Log& log);
  ~Trainer();

  /// Prints what the run would be and need: model, memory, steps, data. Checks the data files. Takes no
  /// device memory.
  void dry_run();

  /// Trains to the end or until asked to stop. Raises Error (training) where the loss is not finite and the
  /// run does not skip such steps, (environment) where the last checkpoint could not be written.
  RunResult run();

 private:
  void open_data();
  void start();
  void check_folder() const;
  void check_memory() const;
  bool loads_from_run_folder() const;
  void leave_later_checkpoints(bool is_loaded);
  bool should_stop(RunResult& result) const;
  void iterate();
  void stop_at_bad_loss(const StepResult& result);
  std::optional<double> loss_of(const SampleSource& source, std::int64_t first);
  void evaluate();
  void final_evaluation();
  void print_samples();
  void print_memory() const;
  std::int64_t train_samples() const;
  std::int64_t valid_first_sample() const;

  const TrainOptions& options_;
  std::string effective_config_;
  Log& log_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<Profiler> profiler_;  ///< with --profile
  std::unique_ptr<Device> device_;
  GptConfig config_;
  NumMicrobatchesCalculator calculator_;
  StepRules rules_;
  DatasetSplits data_;
  RunIdentity identity_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<TrainingState> state_;
  std::optional<Reporter> reporter_;
  std::optional<double> validation_loss_;
  std::optional<RunSaver> saver_;  ///< after what it reads
  double started_seconds_ = 0;
  std::optional<StopRequest> stop_;
};

}  // namespace megalith
