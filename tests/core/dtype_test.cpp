#include "core/dtype.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace megalith {
namespace {

// Every half-precision number survives the way to float32 and back, and the midpoint between neighbours
// rounds to the even one, anything past it to the nearer one.
TEST(Float16, RoundsToNearestEven) {
  Float16 below;
  Float16 above;
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    below.bits = static_cast<std::uint16_t>(bits);
    above.bits = static_cast<std::uint16_t>(bits + 1);
    const auto low = static_cast<float>(below);
    const auto high = static_cast<float>(above);
    ASSERT_LT(low, high);
    ASSERT_EQ(Float16(low).bits, below.bits);
    ASSERT_EQ(Float16(-high).bits, above.bits | 0x8000);
    const float middle = (low + high) / 2;
    ASSERT_EQ(Float16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(Float16(std::nextafter(middle, 1e9F)).bits, bits + 1);
  }
}

TEST(Float16, KnowsItsLimits) {
  Float16 one;
  one.bits = 0x3c00;
  EXPECT_EQ(static_cast<float>(one), 1.0F);
  EXPECT_EQ(Float16(65504.0F).bits, 0x7bff);
  EXPECT_EQ(Float16(65519.0F).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(Float16(1e30F).bits, 0x7c00);
  EXPECT_EQ(Float16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(Float16(-0.0F).bits, 0x8000);
}

}  // namespace
}  // namespace megalith
