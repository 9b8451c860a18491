#include "device/reference/elements.h"

#include "device/rounding.h"

namespace megalith::reference {

template <>
BFloat16 from_double<BFloat16>(double value) {
  return BFloat16(rounded_to_odd(value));
}

template <>
Float16 from_double<Float16>(double value) {
  return Float16(rounded_to_odd(value));
}

}  // namespace megalith::reference
