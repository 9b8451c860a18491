// Rounding a float64 to a shorter type in one step.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace megalith {

/// Rounds toward zero and marks in the last bit that something was cut off ("round to odd"). A float so made
/// rounds to bfloat16 or float16 as the double would, where the nearest float could have rounded onto a tie.
inline float rounded_to_odd(double value) {
  float result = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(result) == value) return result;
  if (std::fabs(static_cast<double>(result)) > std::fabs(value)) result = std::nextafter(result, 0.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | 1U);
}

}  // namespace megalith
