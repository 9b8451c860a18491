// What the reference kernels share: choosing the element type, converting single elements, and walking
// strided tensors row by row.
#pragma once

#include <array>
#include <utility>

#include "core/dtype.h"
#include "core/tensor.h"

namespace megalith::reference {

/// Rounds to nearest even, once (a double that went through float first could round twice).
template <typename T>
T from_double(double value);
template <>
inline double from_double<double>(double value) {
  return value;
}
template <>
inline float from_double<float>(double value) {
  return static_cast<float>(value);
}
template <>
BFloat16 from_double<BFloat16>(double value);
template <>
Float16 from_double<Float16>(double value);
template <>
inline std::int64_t from_double<std::int64_t>(double value) {
  return static_cast<std::int64_t>(value);
}
template <>
inline std::int32_t from_double<std::int32_t>(double value) {
  return static_cast<std::int32_t>(value);
}
template <>
inline std::uint16_t from_double<std::uint16_t>(double value) {
  return static_cast<std::uint16_t>(value);
}
template <>
inline std::uint8_t from_double<std::uint8_t>(double value) {
  return static_cast<std::uint8_t>(value);
}

inline double to_double(double value) {
  return value;
}
inline double to_double(float value) {
  return static_cast<double>(value);
}
inline double to_double(BFloat16 value) {
  return static_cast<double>(static_cast<float>(value));
}
inline double to_double(Float16 value) {
  return static_cast<double>(static_cast<float>(value));
}

/// Stands for a type in a call: `Type<T>` tells a generic lambda which T to use.
template <typename T>
struct Type {
  using type = T;
};

/// Calls body(Type<T>{}) with the C++ type of a compute type this device has: float64 or float32.
template <typename Body>
void with_compute_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float64:
      return body(Type<double>{});
    case DType::float32:
      return body(Type<float>{});
    default:
      fail(ErrorKind::internal, "device reference", "computing in {}; it has float32 and float64",
           name_of(dtype));
  }
}

/// The same for every float type, for kernels that convert.
template <typename Body>
void with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::bfloat16:
      return body(Type<BFloat16>{});
    case DType::float16:
      return body(Type<Float16>{});
    default:
      with_compute_type(dtype, body);
  }
}

/// Calls body(offsets) once for each run along the innermost dimension of equally shaped tensors; offsets[i]
/// is the run's first element in tensors[i], counted in elements. A scalar is one run of one element.
template <std::size_t N, typename Body>
void for_each_row(const std::array<const Tensor*, N>& tensors, const Body& body) {
  const Shape& shape = tensors[0]->shape;
  if (shape.count() == 0) return;
  const int outer = shape.rank() - 1;
  std::array<std::int64_t, Shape::max_rank> index{};
  while (true) {
    std::array<std::int64_t, N> offsets{};
    for (std::size_t i = 0; i < N; ++i) {
      for (int dim = 0; dim < outer; ++dim) {
        offsets[i] += index[static_cast<std::size_t>(dim)] * tensors[i]->stride(dim);
      }
    }
    body(offsets);
    int dim = outer - 1;
    while (dim >= 0 && ++index[static_cast<std::size_t>(dim)] == shape[dim])
      index[static_cast<std::size_t>(dim--)] = 0;
    if (dim < 0) return;
  }
}

/// Elements of one such run.
inline std::int64_t row_length(const Tensor& tensor) {
  return tensor.shape.rank() == 0 ? 1 : tensor.shape[-1];
}

}  // namespace megalith::reference
