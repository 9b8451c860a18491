// How a checkpoint is written: what save_checkpoint() and CheckpointSaver share.
#pragma once

#include <functional>

#include "checkpoint/checkpoint.h"
#include "core/block_pool.h"

namespace megalith {

struct CheckpointWriting {
  Device& device;
  BlockPool& pool;                    ///< on the way from the device to the disk
  int lower_priority = 0;             ///< of all threads that take part (core/thread_cost.h)
  std::function<void()> when_copied;  ///< called once the tensors' memory is no longer read
};

/// save_checkpoint() on the calling thread. Copies on the device's copy queue.
CheckpointSaveReport write_checkpoint(const CheckpointWriting& how, const CheckpointSaveOptions& options,
                                      const nlohmann::json& metadata,
                                      const std::vector<LogicalTensor>& tensors);

}  // namespace megalith
