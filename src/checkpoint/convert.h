// Copies a box of stored elements into device memory, converting the element type on the way.
#pragma once

#include <cstddef>
#include <span>

#include "core/tensor.h"
#include "device/device.h"
#include "parallel/shard_map.h"

namespace megalith {

struct BoxCopy {
  std::span<const std::byte> stored;  ///< a slice's elements, row-major, maybe unaligned
  DType dtype = DType::float32;       ///< their type
  Box slice;                          ///< the slice's place in the logical tensor
  Box wanted;                         ///< the part to copy, in logical coordinates, inside `slice`
};

/// Writes copy.wanted to the box `target` of `local`. Blocks until done. Float types convert among each
/// other, integer types must be equal (Error, input).
void copy_box_to_device(Device& device, const BoxCopy& copy, const Tensor& local, const Box& target);

}  // namespace megalith
