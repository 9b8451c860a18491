// Saves checkpoints while the training goes on. The tensors' memory may be read, and must not change, until
// it has been copied: a training step reads weights and moments all through its forward and backward pass and
// changes them only at its end, so copying and writing go beside it, and only the optimizer may have to wait.
//
// Blocks of 1 MiB go from device memory through a few blocks of host memory to the disk. Where the disk is
// slower than the next steps allow, the rest is copied to host memory instead of holding up the optimizer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/block_pool.h"

namespace megalith {

class CheckpointSaver {
 public:
  /// `bytes`: memory for a copy of what is saved, taken only as far as a slow disk makes it necessary. With
  /// less than a checkpoint's size, wait_until_copied() may wait for the disk. `device` outlives the saver.
  CheckpointSaver(Device& device, std::size_t bytes) : device_(device), pool_(bytes) {}
  /// Waits for a save that is under way.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /// Starts a save, as save_checkpoint(), of the state that the device's compute queue has come to. None may
  /// be under way. `patience`: how long the copy may take at the disk's pace before it goes to memory.
  void start(const CheckpointSaveOptions& options, const nlohmann::json& metadata,
             const std::vector<LogicalTensor>& tensors, std::chrono::duration<double> patience);
  /// Blocks until the tensors' memory may change. Raises nothing; does nothing where no save is under way.
  void wait_until_copied();
  /// A save was started and not yet asked for by finish().
  bool is_started() const { return thread_.joinable(); }
  /// It has ended, well or not: finish() does not wait.
  bool has_ended() const;
  /// Waits for its end. Raises what save_checkpoint() raises.
  CheckpointSaveReport finish();

  /// Memory taken so far.
  std::size_t touched_bytes() const { return pool_.touched_bytes(); }

 private:
  void run(const CheckpointSaveOptions& options, const nlohmann::json& metadata,
           const std::vector<LogicalTensor>& tensors);

  Device& device_;
  BlockPool pool_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_copied_ = true;
  bool has_ended_ = false;
  std::exception_ptr error_;
  CheckpointSaveReport report_;
  std::thread thread_;
};

}  // namespace megalith
