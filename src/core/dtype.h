// Element types of tensors and their sizes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace megalith {

enum class DType : std::uint8_t { float64, float32, bfloat16, float16, int64, int32, uint16, uint8 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::bfloat16:
    case DType::float16:
    case DType::uint16:
      return 2;
    case DType::uint8:
      return 1;
  }
  return 0;
}

/// "float32", "bfloat16", ...
std::string_view name_of(DType dtype);

/// The inverse of name_of. Raises Error (usage) for an unknown name.
DType dtype_from_name(std::string_view name);

/// A bfloat16 in memory: the upper half of a float32. Arithmetic is done in float32.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) {
      bits = static_cast<std::uint16_t>((word >> 16) | 0x40U);
    } else {
      bits = static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
    }
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// The DType of a C++ type: dtype_of<float> == DType::float32.
template <typename T>
inline constexpr DType dtype_of = DType::uint8;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::uint16;

}  // namespace megalith
