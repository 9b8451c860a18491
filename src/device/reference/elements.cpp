#include "device/reference/elements.h"

#include <bit>
#include <cmath>

namespace megalith::reference {
namespace {

// Rounds toward zero and marks in the last bit that something was cut off ("round to odd"). A float so made
// rounds to a shorter type as the double would, where the nearest float could have rounded onto a tie.
float rounded_to_odd(double value) {
  float result = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(result) == value) return result;
  if (std::fabs(static_cast<double>(result)) > std::fabs(value)) result = std::nextafter(result, 0.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | 1U);
}

}  // namespace

template <>
BFloat16 from_double<BFloat16>(double value) {
  return BFloat16(rounded_to_odd(value));
}

template <>
Float16 from_double<Float16>(double value) {
  return Float16(rounded_to_odd(value));
}

}  // namespace megalith::reference
