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

/// An IEEE 754 half-precision number in memory. Arithmetic is done in float32.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  /// Rounds to nearest, ties to even; past 65504 (rounded) infinity; NaN stays NaN.
  explicit Float16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (word >> 16) & 0x8000U;
    const std::uint32_t magnitude = word & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) {
      half = 0x7e00U;
    } else if (magnitude >= 0x47800000U) {
      half = 0x7c00U;
    } else if (magnitude >= 0x38800000U) {
      // Normal: rebias the exponent (127 to 15) and round away 13 bits; a carry moves to the next exponent.
      half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    } else {
      // Subnormal: adding 0.5 leaves the value in steps of 2^-24 in the sum's low bits, rounded by the adder.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
    }
    bits = static_cast<std::uint16_t>(sign | half);
  }
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
    if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
    return std::bit_cast<float>(sign |
                                std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F));
  }
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
inline constexpr DType dtype_of<Float16> = DType::float16;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::uint16;

}  // namespace megalith
