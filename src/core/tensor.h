// Tensor: a view of device memory. It owns nothing and cannot be read here: device memory is not host
// memory, so only a Device (device/device.h) looks behind `address`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/shape.h"

namespace megalith {

/// An address in some device's memory. Arithmetic in bytes is allowed, dereferencing is not.
struct DeviceAddress {
  std::uintptr_t value = 0;
  DeviceAddress operator+(std::int64_t bytes) const { return {value + static_cast<std::uintptr_t>(bytes)}; }
  bool operator==(const DeviceAddress&) const = default;
  explicit operator bool() const { return value != 0; }
};

struct Tensor {
  DeviceAddress address;
  DType dtype = DType::float32;
  Shape shape;
  /// Distance between neighbours along each dimension, in elements.
  std::array<std::int64_t, Shape::max_rank> strides{};

  Tensor() = default;
  /// A contiguous, row-major view.
  Tensor(DeviceAddress start, DType type, const Shape& extents)
      : address(start), dtype(type), shape(extents) {
    std::int64_t stride = 1;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      strides[static_cast<std::size_t>(dim)] = stride;
      stride *= shape[dim];
    }
  }

  /// False for the absent tensor (an optional argument that is not given).
  explicit operator bool() const { return static_cast<bool>(address); }
  std::int64_t count() const { return shape.count(); }
  /// Bytes of a contiguous tensor of this shape.
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype); }
  std::int64_t stride(int dim) const {
    return strides[static_cast<std::size_t>(dim < 0 ? dim + shape.rank() : dim)];
  }

  bool is_contiguous() const {
    std::int64_t expected = 1;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      if (shape[dim] != 1 && stride(dim) != expected) return false;
      expected *= shape[dim];
    }
    return true;
  }

  /// The same elements under another shape of equal count. Needs a contiguous tensor.
  Tensor reshaped(const Shape& extents) const {
    MEGALITH_ASSERT(is_contiguous() && extents.count() == count(),
                    format("cannot view {} as {}", shape.to_string(), extents.to_string()));
    return {address, dtype, extents};
  }

  /// Elements [begin, end) along `dim`; strides are kept.
  Tensor sliced(int dim, std::int64_t begin, std::int64_t end) const {
    const int index = dim < 0 ? dim + shape.rank() : dim;
    MEGALITH_ASSERT(begin >= 0 && begin <= end && end <= shape[index],
                    format("slice {}..{} of dimension {} of {}", begin, end, index, shape.to_string()));
    Tensor part = *this;
    Shape extents;
    for (int i = 0; i < shape.rank(); ++i) extents.push_back(i == index ? end - begin : shape[i]);
    part.shape = extents;
    part.address = address + begin * stride(index) * static_cast<std::int64_t>(size_of(dtype));
    return part;
  }
};

}  // namespace megalith
