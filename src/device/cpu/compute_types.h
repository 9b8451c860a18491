// Chooses a kernel's template arguments from the dtypes of its tensors.
#pragma once

#include <string_view>
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"
#include "device/rounding.h"

namespace megalith {

/// Calls body.operator()<T>() with T the C++ type of a compute type, float or BFloat16. Raises Error
/// (internal) for a type that the cpu device has no kernels for.
template <typename Body>
void with_compute_type(std::string_view kernel, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float32:
      return body.template operator()<float>();
    case DType::bfloat16:
      return body.template operator()<BFloat16>();
    default:
      fail(ErrorKind::internal, kernel,
           "the cpu device has no kernel for {}; use float32 or bfloat16, or the "
           "reference device",
           name_of(dtype));
  }
}

/// For tensors of the sum type, and master weights: raises the same Error unless dtype is float32.
inline void require_float32(std::string_view kernel, DType dtype) {
  if (dtype != DType::float32) {
    fail(ErrorKind::internal, kernel,
         "the cpu device has no kernel for {}; use float32, or the reference device", name_of(dtype));
  }
}

/// A float64 as any float type, rounded once to nearest, ties to even.
template <typename T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    return T(rounded_to_odd(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace megalith
