#include "core/block_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/error.h"

namespace megalith {

BlockPool::BlockPool(std::size_t bytes)
    : most_blocks_(std::max(lean_blocks, (bytes + block_bytes - 1) / block_bytes)) {
  void* const memory = ::mmap(nullptr, most_blocks_ * block_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorKind::environment, "host memory", "no room for {} bytes on their way to the disk",
         most_blocks_ * block_bytes);
  }
  memory_ = static_cast<std::byte*>(memory);
#if defined(MADV_HUGEPAGE)
  // Only advice: without huge pages the memory works all the same.
  static_cast<void>(::madvise(memory, most_blocks_ * block_bytes, MADV_HUGEPAGE));
#endif
}

BlockPool::~BlockPool() {
  ::munmap(memory_, most_blocks_ * block_bytes);
}

void BlockPool::stay_lean_until(std::chrono::steady_clock::time_point time) {
  {
    const std::lock_guard lock(mutex_);
    lean_until_ = time;
  }
  changed_.notify_all();
}

std::byte* BlockPool::take() {
  std::unique_lock lock(mutex_);
  while (free_.empty()) {
    const auto now = std::chrono::steady_clock::now();
    if (touched_ < (now < lean_until_ ? lean_blocks : most_blocks_))
      return memory_ + block_bytes * touched_++;
    if (touched_ < most_blocks_ && lean_until_ != std::chrono::steady_clock::time_point::max()) {
      changed_.wait_until(lock, lean_until_);
    } else {
      changed_.wait(lock);
    }
  }
  std::byte* const block = free_.back();
  free_.pop_back();
  return block;
}

void BlockPool::give_back(std::byte* block) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(block);
  }
  changed_.notify_one();
}

std::size_t BlockPool::touched_bytes() const {
  const std::lock_guard lock(mutex_);
  return touched_ * block_bytes;
}

}  // namespace megalith
