// The checkpoints of a run: saved at once or, with --async-save, beside the training, one at a time; what
// became of each is said in the log. A save that fails is a warning, and the training goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoint/checkpoint_saver.h"
#include "core/log.h"
#include "core/options.h"
#include "train/train_checkpoint.h"

namespace megalith {

class RunSaver {
 public:
  /// `saved_at`: the iteration that the run folder holds already, -1 for none. All references outlive the
  /// saver.
  RunSaver(Device& device, std::filesystem::path root, const TrainOptions& options,
           const RunIdentity& identity, const TrainingState& state, std::int64_t saved_at, Log& log);

  /// Saves the state as it is now, or starts to, after the end of a save that is under way. `step_seconds`: a
  /// step's duration.
  void save(double step_seconds);
  /// Before weights or moments change: waits until a save under way has copied them.
  void before_update();
  /// Says what became of a save that has ended.
  void poll();
  /// Waits for a save under way and says what became of it.
  void wait();
  /// At the end of a run: waits, and saves the state unless that is done. False where that failed.
  bool save_last();

  /// The newest iteration saved, -1 for none.
  std::int64_t saved_at() const { return saved_at_; }
  /// Memory that saves beside the training have used.
  std::size_t copy_bytes() const { return background_ ? background_->touched_bytes() : 0; }

 private:
  bool save_now();
  void take_result();
  void say_saved(std::int64_t iteration, const CheckpointSaveReport& report);
  void warn_of_failure(std::int64_t iteration, const std::exception& error) const;

  Device& device_;
  std::filesystem::path root_;
  const TrainOptions& options_;
  const RunIdentity& identity_;
  const TrainingState& state_;
  Log& log_;
  std::optional<CheckpointSaver> background_;
  std::int64_t saved_at_;
  std::int64_t saving_ = -1;  ///< iteration under way
  double waited_ = 0;         ///< seconds that the save under way has held up the training
};

/// Host memory for a copy of what a save writes, 0 without --async-save.
std::size_t save_copy_bytes(const TrainOptions& options, std::size_t weights, std::size_t optimizer);

}  // namespace megalith
