// What a machine's processors and memory can do at most, measured: what kernels and steps are held against.
#pragma once

#include <cstdint>
#include <vector>

#include "device/kernel_work.h"

namespace megalith {

/// Bytes per second that move when a block of `bytes` is copied within itself, or read, again and again: from
/// the caches where it fits there.
struct Bandwidth {
  double bytes = 0.0;  ///< of the block
  double copy = 0.0;   ///< read and written; most processors read a line before they write it, uncounted here
  double update = 0.0;  ///< read and written
  double read = 0.0;
};

/// Rates of `threads` threads together. Unknown (0, empty) where this build cannot measure them.
struct Yardsticks {
  int threads = 1;
  double multiply_add = 0.0;          ///< FLOPs a second of float32 multiply-adds between registers, two each
  std::vector<Bandwidth> bandwidths;  ///< by growing block; the last block is larger than most caches

  /// For work on so many bytes, between the two blocks nearest in size.
  Bandwidth bandwidth(double bytes) const;
  /// Of the largest block.
  Bandwidth memory() const { return bandwidths.empty() ? Bandwidth{} : bandwidths.back(); }
};

/// Takes about a second, and 512 MiB of memory while it measures.
Yardsticks measure_yardsticks(int threads);

/// The least time for some work, and what sets it.
struct KernelLimit {
  enum class By : std::uint8_t { arithmetic, memory } by = By::memory;
  double seconds = 0.0;
};

/// The largest of FLOPs over the multiply-add peak, bytes read over the bandwidth of reading, and all bytes
/// over that of copying or changing, whichever is better; bandwidths of a block of as many bytes as the work
/// moves.
KernelLimit limit_of(const KernelWork& work, const Yardsticks& yardsticks);

}  // namespace megalith
