#include "train/run_saver.h"

#include <chrono>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The optimizer comes at the end of the next step: half of it at the disk's pace leaves time for the rest to
// be copied.
constexpr double patience_steps = 0.5;

std::size_t bytes_of(const std::vector<LogicalTensor>& tensors) {
  std::size_t bytes = 0;
  for (const LogicalTensor& tensor : tensors) bytes += tensor.local.bytes();
  return bytes;
}

}  // namespace

std::size_t save_copy_bytes(const TrainOptions& options, std::size_t weights, std::size_t optimizer) {
  if (!options.async_save) return 0;
  return weights + (options.no_save_optim ? 0 : optimizer);
}

RunSaver::RunSaver(Device& device, std::filesystem::path root, const TrainOptions& options,
                   const RunIdentity& identity, const TrainingState& state, std::int64_t saved_at, Log& log)
    : device_(device),
      root_(std::move(root)),
      options_(options),
      identity_(identity),
      state_(state),
      log_(log),
      saved_at_(saved_at) {
  if (options.async_save) {
    background_.emplace(
        device, save_copy_bytes(options, bytes_of(state.store.weights()), bytes_of(state.optimizer.state())));
  }
}

void RunSaver::save(double step_seconds) {
  if (!background_) {
    save_now();
    return;
  }
  const double begin = now_seconds();
  if (background_->is_started()) {
    if (!background_->has_ended()) {
      log_.line(format(" waiting for checkpoint iter_{:07}, which is still being written", saving_));
    }
    take_result();
  }
  const TrainingCheckpoint checkpoint = training_checkpoint(root_, options_, identity_, state_);
  background_->start(checkpoint.options, checkpoint.metadata, checkpoint.tensors,
                     std::chrono::duration<double>(step_seconds * patience_steps));
  saving_ = state_.iteration;
  waited_ = now_seconds() - begin;
}

void RunSaver::before_update() {
  if (!background_ || !background_->is_started()) return;
  const double begin = now_seconds();
  background_->wait_until_copied();
  waited_ += now_seconds() - begin;
}

void RunSaver::poll() {
  if (background_ && background_->is_started() && background_->has_ended()) take_result();
}

void RunSaver::wait() {
  if (background_ && background_->is_started()) take_result();
}

bool RunSaver::save_last() {
  wait();
  return saved_at_ == state_.iteration || save_now();
}

bool RunSaver::save_now() {
  const TrainingCheckpoint checkpoint = training_checkpoint(root_, options_, identity_, state_);
  try {
    say_saved(state_.iteration,
              save_checkpoint(device_, checkpoint.options, checkpoint.metadata, checkpoint.tensors));
  } catch (const Error& error) {
    warn_of_failure(state_.iteration, error);
    return false;
  }
  return true;
}

void RunSaver::take_result() {
  try {
    say_saved(saving_, background_->finish());
  } catch (const Error& error) {
    warn_of_failure(saving_, error);
  }
  saving_ = -1;
}

void RunSaver::say_saved(std::int64_t iteration, const CheckpointSaveReport& report) {
  saved_at_ = iteration;
  const auto bytes = static_cast<double>(report.bytes);
  std::string line =
      format(" saved checkpoint iter_{:07} to {} in {:.2f} s: {:.1f} MB, {:.0f} MB/s, ", iteration,
             root_.string(), report.seconds, bytes / 1e6, bytes / 1e6 / std::max(report.seconds, 1e-9));
  line += format("processor time {:.2f} s", report.processor_seconds);
  if (saving_ == iteration) line += format("; training waited {:.0f} ms", waited_ * 1e3);
  log_.line(line);
}

void RunSaver::warn_of_failure(std::int64_t iteration, const std::exception& error) const {
  log_.warn(format("no checkpoint at iteration {}: {}. Training goes on; {}.", iteration, error.what(),
                   saved_at_ >= 0 ? format("the checkpoint of iteration {} is whole", saved_at_)
                                  : "there is no earlier checkpoint"));
}

}  // namespace megalith
