// Working memory of the cpu device's kernels: kept between calls and grown when a kernel needs more.
#pragma once

#include <cstddef>
#include <vector>

#include "device/cpu/aligned_memory.h"

namespace megalith {

class Scratch {
 public:
  /// Memory of at least `bytes` for place `index` (a thread's slot, or a purpose of the kernel's own). Valid
  /// until the next call with the same index; contents are undefined. Not from several threads at once.
  std::byte* get(int index, std::size_t bytes) {
    const auto place = static_cast<std::size_t>(index);
    if (place >= blocks_.size()) blocks_.resize(place + 1);
    Block& block = blocks_[place];
    if (block.bytes < bytes) {
      block.memory.reset();
      block.bytes = 0;
      block.memory = allocate_aligned(bytes);
      block.bytes = bytes;
    }
    return block.memory.get();
  }

  /// What get gave for this index last.
  std::byte* at(int index) const { return blocks_[static_cast<std::size_t>(index)].memory.get(); }

 private:
  struct Block {
    AlignedMemory memory;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks_;
};

}  // namespace megalith
