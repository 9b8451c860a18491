#include "checkpoint/checkpoint_saver.h"

#include <utility>

#include "checkpoint/checkpoint_writing.h"
#include "core/error.h"

namespace megalith {
namespace {

// Copying and checksums take a few tenths of a second of one processor for each gigabyte.
constexpr int lower_priority = 5;

}  // namespace

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointSaver::start(const CheckpointSaveOptions& options, const nlohmann::json& metadata,
                            const std::vector<LogicalTensor>& tensors,
                            std::chrono::duration<double> patience) {
  MEGALITH_ASSERT(!is_started(), "two saves under way");
  is_copied_ = false;
  has_ended_ = false;
  error_ = nullptr;
  const auto now = std::chrono::steady_clock::now();
  pool_.stay_lean_until(now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience));
  device_.wait(QueueKind::copy, device_.record(QueueKind::compute));
  thread_ = std::thread([this, options, metadata, tensors] { run(options, metadata, tensors); });
}

void CheckpointSaver::run(const CheckpointSaveOptions& options, const nlohmann::json& metadata,
                          const std::vector<LogicalTensor>& tensors) {
  const auto say_copied = [this] {
    {
      const std::lock_guard lock(mutex_);
      is_copied_ = true;
    }
    changed_.notify_all();
  };
  std::exception_ptr error;
  CheckpointSaveReport report;
  try {
    report = write_checkpoint({device_, pool_, lower_priority, say_copied}, options, metadata, tensors);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    is_copied_ = true;
    has_ended_ = true;
    error_ = error;
    report_ = report;
  }
  changed_.notify_all();
}

void CheckpointSaver::wait_until_copied() {
  std::unique_lock lock(mutex_);
  if (is_copied_) return;
  pool_.stay_lean_until({});
  changed_.wait(lock, [this] { return is_copied_; });
}

bool CheckpointSaver::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

CheckpointSaveReport CheckpointSaver::finish() {
  MEGALITH_ASSERT(is_started(), "no save to finish");
  thread_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return report_;
}

}  // namespace megalith
