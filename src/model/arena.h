// Arena: device memory that is planned before it is taken. The same function asks a counting arena how much
// it needs and then a real one for the tensors, so a figure of memory can never differ from what a step uses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "device/device.h"

namespace megalith {

class Arena {
 public:
  /// Counts only: tensors it gives have no address.
  Arena() = default;
  /// Takes `bytes` of the device's memory at once.
  Arena(Device& device, std::size_t bytes)
      : memory_(device, bytes), start_(memory_.address()), size_(bytes), real_(true) {}

  /// Gives out the memory of `block`, which the caller keeps: for tensors that share memory with others
  /// because they are never alive at the same time. Counts where `block` has no address.
  explicit Arena(const Tensor& block) : start_(block.address), size_(block.bytes()), real_(bool(block)) {}

  /// The next tensor, 64-byte aligned, contents undefined. Asking for more than was planned is a broken
  /// invariant.
  Tensor allocate(std::string_view name, DType dtype, const Shape& shape);

  /// Bytes given out, alignment included.
  std::size_t bytes() const { return used_; }
  /// What was given out, in order: name and bytes without alignment.
  const std::vector<std::pair<std::string, std::size_t>>& items() const { return items_; }

 private:
  DeviceMemory memory_;
  DeviceAddress start_;
  std::size_t size_ = 0;
  bool real_ = false;
  std::size_t used_ = 0;
  std::vector<std::pair<std::string, std::size_t>> items_;
};

/// The same memory under another shape of at most as many elements.
Tensor prefix_view(const Tensor& tensor, const Shape& shape);

}  // namespace megalith
