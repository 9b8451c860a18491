// The vector functions against the standard library's float64, on every instruction set of this machine.
#if defined(MEGALITH_HAVE_HWY)
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "core/dtype.h"
#include "core/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/device/simd_math_test.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_philox.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// `function` counts the cases of `functions` below.
void apply(int function, const float* from, float* to, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t rest = count - i < lanes ? count - i : lanes;
    const auto x = rest < lanes ? simd::load_n(d, from + i, rest) : simd::load(d, from + i);
    auto y = x;
    if (function == 0) y = simd::exp(d, x);
    if (function == 1) y = simd::exp_nonpositive(d, x);
    if (function == 2) y = simd::log(d, x);
    if (function == 3) y = simd::sigmoid2(d, x);
    if (function == 4) y = simd::tanh(d, x);
    if (function == 5) y = simd::erf(d, x);
    if (function == 6) y = simd::gelu_tanh(d, x);
    if (function == 7) y = simd::gelu_erf(d, x);
    if (function == 8) y = simd::exp2_small(d, x);
    if (rest < lanes) {
      simd::store_n(y, d, to + i, rest);
    } else {
      simd::store(y, d, to + i);
    }
  }
}

void round_trip(const float* from, BFloat16* to, float* back, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    simd::store(simd::load(d, from + i), d, to + i);
    simd::store(simd::load(d, to + i), d, back + i);
  }
}

void words(PhiloxKey key, std::uint64_t sample, std::uint32_t head, std::uint32_t row, std::uint32_t first,
           std::size_t blocks, std::vector<std::uint32_t>& out) {
  out.resize(simd::dropout_words_room(blocks));
  simd::dropout_words(key, sample, head, row, first, blocks, out.data());
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(apply);
HWY_EXPORT(round_trip);
HWY_EXPORT(words);

namespace {

struct FunctionCase {
  const char* name;
  double (*exact)(double x);
  double low, high;
  double ulps;      ///< allowed error in units of the last place of the result ...
  double absolute;  ///< ... plus this
};

const FunctionCase functions[] = {
    {"exp", [](double x) { return std::exp(x); }, -110, 88.72, 2, 1e-45},
    {"exp_nonpositive", [](double x) { return std::exp(x); }, -110, 0, 2, 1.25e-38},
    {"log", [](double x) { return std::log(x); }, 1e-39, 50, 2, 0},
    {"sigmoid2", [](double x) { return 1 / (1 + std::exp2(-x)); }, -125, 60, 3, 0},
    {"tanh", [](double x) { return std::tanh(x); }, -12, 12, 3, 0},
    {"erf", [](double x) { return std::erf(x); }, -6, 6, 3, 0},
    {"gelu_tanh",
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, -6,
     6, 4, 1e-7},
    {"gelu_erf", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -6, 6, 4, 3e-7},
    {"exp2_small", [](double x) { return std::exp2(x); }, -160, 126, 2, 1.25e-38},
};

/// Runs the body on every instruction set that this machine has and the build made.
template <typename Body>
void for_each_instruction_set(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(simd_math, functions_are_within_a_few_ulp) {
  for_each_instruction_set([] {
    for (int number = 0; number < static_cast<int>(std::size(functions)); ++number) {
      const FunctionCase& function = functions[number];
      std::vector<float> x;
      for (int i = 0; i <= 100003; ++i) {
        x.push_back(static_cast<float>(function.low + (function.high - function.low) * i / 100003.0));
        x.push_back(x.back() * static_cast<float>(i % 1000) * 1e-3F +
                    static_cast<float>(function.low > 0 ? 1e-30 : 0));
      }
      std::vector<float> y(x.size());
      HWY_DYNAMIC_DISPATCH(apply)(number, x.data(), y.data(), x.size());
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = function.exact(x[i]);
        const double unit = std::max(std::abs(exact) * 1.2e-7 / 2, 1.5e-45);
        const double error = std::max(0.0, std::abs(y[i] - exact) - function.absolute) / unit;
        if (!(error <= worst)) {
          worst = error;
          where = x[i];
        }
      }
      EXPECT_LE(worst, 2 * function.ulps)
          << function.name << " at " << where << " (half units in the last place)";
    }
  });
}

TEST(simd_math, special_values) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_instruction_set([&] {
    const std::vector<float> x{-infinity, infinity, nan, 0.0F, -0.0F, -200.0F, 200.0F, -1.0F, 1e-42F};
    std::vector<float> y(x.size());
    const auto run = [&](int number) { HWY_DYNAMIC_DISPATCH(apply)(number, x.data(), y.data(), x.size()); };
    run(0);
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[1], infinity);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0F);
    EXPECT_EQ(y[5], 0.0F);
    EXPECT_EQ(y[6], infinity);
    run(1);
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0F);
    EXPECT_EQ(y[5], 0.0F);
    run(2);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], infinity);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], -infinity);
    EXPECT_TRUE(std::isnan(y[7]));
    EXPECT_NEAR(y[8], std::log(1e-42), 1e-3);
    for (const int saturating : {4, 5}) {
      run(saturating);
      EXPECT_EQ(y[0], -1.0F);
      EXPECT_EQ(y[1], 1.0F);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(y[3], 0.0F);
    }
  });
}

TEST(simd_math, bfloat16_rounds_as_the_storage_class) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; x.size() < 65536; bits += 0x00010007U) x.push_back(std::bit_cast<float>(bits));
  for_each_instruction_set([&] {
    std::vector<BFloat16> stored(x.size());
    std::vector<float> back(x.size());
    HWY_DYNAMIC_DISPATCH(round_trip)(x.data(), stored.data(), back.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const BFloat16 expected(x[i]);
      ASSERT_EQ(stored[i].bits, expected.bits) << x[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]),
                std::bit_cast<std::uint32_t>(static_cast<float>(expected)));
    }
  });
}

TEST(simd_philox, gives_the_words_of_the_scalar_generator) {
  const PhiloxKey key = philox_key(7, "dropout:test");
  const std::uint64_t sample = 0x1234567890ULL;
  for_each_instruction_set([&] {
    std::vector<std::uint32_t> found;
    HWY_DYNAMIC_DISPATCH(words)(key, sample, 5, 77, 0xfffU, 37, found);
    ASSERT_GE(found.size(), 4U * 37);
    for (std::uint32_t i = 0; i < 4 * 37; ++i) {
      ASSERT_EQ(found[i], dropout_bits(key, sample, 5, 77, 4 * 0xfffU + i)) << i;
    }
  });
}

}  // namespace
}  // namespace megalith
#endif
#endif
