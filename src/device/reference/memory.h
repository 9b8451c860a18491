// Where the reference device keeps its blocks: plain host memory, or the doubly mapped memory of strict mode.
// Calls from several threads are safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/tensor.h"

namespace megalith::reference {

/// Turns device addresses into pointers the kernels may follow. A plain value: kernels that run late keep a
/// copy.
class HostView {
 public:
  explicit HostView(std::intptr_t shift) : shift_(shift) {}

  /// The first element of `tensor`; null for an absent one.
  template <typename T>
  T* pointer(const Tensor& tensor) const {
    if (!tensor) return nullptr;
    // An address is a number by design, and becomes a pointer only here.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(tensor.address.value + static_cast<std::uintptr_t>(shift_));
  }

 private:
  std::intptr_t shift_;
};

class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// See Device::allocate. Zero bytes give a block of its own.
  virtual DeviceAddress allocate(std::size_t bytes) = 0;
  /// Raises Error (internal) for an address that allocate did not give.
  virtual void release(DeviceAddress address) = 0;
  virtual std::size_t allocated_bytes() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  virtual HostView view() const = 0;
};

std::unique_ptr<Memory> make_plain_memory();
std::unique_ptr<Memory> make_strict_memory();

}  // namespace megalith::reference
