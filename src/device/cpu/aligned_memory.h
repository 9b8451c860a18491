// Host memory aligned for vectors and, where large, placed on huge pages.
#pragma once

#include <cstddef>
#include <memory>

namespace megalith {

struct AlignedMemoryDeleter {
  std::size_t alignment = 64;
  void operator()(std::byte* block) const;
};

/// 64-byte aligned; blocks of 2 MiB and more are aligned to that and the system is advised to use huge
/// pages.
using AlignedMemory = std::unique_ptr<std::byte[], AlignedMemoryDeleter>;

/// Raises Error (environment) with the size where there is no room. Contents are undefined.
AlignedMemory allocate_aligned(std::size_t bytes);

}  // namespace megalith
