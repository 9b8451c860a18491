// Page-aligned blocks of host memory for data on its way to or from a disk. Blocks come from one range of
// address space and are reused, last given back first taken, so that only as many pages are ever touched as
// blocks were in use at once, and the blocks in use stay in the processor's caches.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace megalith {

class BlockPool {
 public:
  /// What one call of the system reads or writes: large enough for a disk's full rate, small enough for a
  /// second-level cache.
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;
  /// Blocks that keep a disk busy.
  static constexpr std::size_t lean_blocks = 16;

  /// At most `bytes` of memory, rounded up to blocks, at least lean_blocks. Raises Error (environment) where
  /// the system has no address space for it.
  explicit BlockPool(std::size_t bytes = lean_blocks * block_bytes);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Until `time` take() makes do with lean_blocks and waits; after it, it takes more. Whoever must be done
  /// soon sets a time that is past.
  void stay_lean_until(std::chrono::steady_clock::time_point time);
  /// A block of block_bytes; waits while none may be had.
  std::byte* take();
  void give_back(std::byte* block);
  /// Bytes of blocks that were ever in use.
  std::size_t touched_bytes() const;

 private:
  std::byte* memory_ = nullptr;
  std::size_t most_blocks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte*> free_;
  std::size_t touched_ = 0;
  std::chrono::steady_clock::time_point lean_until_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace megalith
