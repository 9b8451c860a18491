#include "core/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megalith {
namespace {

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NormalAgreesWithTheLibraryFunctions) {
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const PhiloxCounter words = philox({i, 0, 0, 0}, philox_key(7, "test"));
    const double uniform = (static_cast<double>(words[0]) + 0.5) * 0x1p-32;
    const double angle = 2.0 * M_PI * static_cast<double>(words[1]) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(uniform));
    const auto [first, second] = normal_from_bits(words[0], words[1]);
    EXPECT_NEAR(first, radius * std::cos(angle), 1e-13);
    EXPECT_NEAR(second, radius * std::sin(angle), 1e-13);
  }
}

TEST(Philox, KeysDifferByNameAndSeed) {
  EXPECT_NE(philox_key(1, "a"), philox_key(1, "b"));
  EXPECT_NE(philox_key(1, "a"), philox_key(2, "a"));
}

}  // namespace
}  // namespace megalith
