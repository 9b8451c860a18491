// Initial weights: the numbers of core/philox.h, many at a time and equal to the bit on every instruction
// set, because normal_from_bits' operations are each rounded correctly and come in the same order here.
//
// Limits: writing costs 4 bytes an element. Two numbers cost one division, one square root and about 75 other
// float64 operations, and ten rounds of Philox about 40 integer ones: on AVX-512 some 5 cycles an element.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/initialize_normal.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_philox.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using WordTag = hn::ScalableTag<std::uint32_t>;
using DoubleTag = hn::ScalableTag<double>;
using LongTag = hn::RebindToUnsigned<DoubleTag>;
using DoubleVector = hn::Vec<DoubleTag>;
using LongVector = hn::Vec<LongTag>;

/// Integers below 2^52 as float64, exactly.
HWY_INLINE DoubleVector double_of(LongVector integer) {
  const DoubleTag d;
  const LongTag integers;
  const auto shifted = hn::Or(integer, hn::Set(integers, 0x4330000000000000U));
  return hn::Sub(hn::BitCast(d, shifted), hn::Set(d, 4503599627370496.0));
}

/// natural_log of core/philox.cpp.
HWY_INLINE DoubleVector natural_log(DoubleVector x) {
  const DoubleTag d;
  const LongTag integers;
  const auto one = hn::Set(d, 1.0);
  const auto bits = hn::BitCast(integers, x);
  auto exponent = hn::Sub(double_of(hn::ShiftRight<52>(bits)), hn::Set(d, 1023.0));
  auto mantissa = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(integers, 0x000fffffffffffffU)),
                                        hn::Set(integers, 0x3ff0000000000000U)));
  const auto large = hn::Gt(mantissa, hn::Set(d, 1.4142135623730951));
  mantissa = hn::IfThenElse(large, hn::Mul(mantissa, hn::Set(d, 0.5)), mantissa);
  exponent = hn::IfThenElse(large, hn::Add(exponent, one), exponent);
  const auto s = hn::Div(hn::Sub(mantissa, one), hn::Add(mantissa, one));
  const auto z = hn::Mul(s, s);
  auto series = hn::Set(d, natural_log_series[0]);
  for (std::size_t term = 1; term < natural_log_series.size(); ++term) {
    series = hn::Add(hn::Mul(series, z), hn::Set(d, natural_log_series[term]));
  }
  return hn::Add(hn::Mul(hn::Add(s, s), series), hn::Mul(exponent, hn::Set(d, 0.6931471805599453)));
}

/// sin_cos_of_turn of core/philox.cpp, the turn in units of 2^-32.
HWY_INLINE void sin_cos_of_turn(LongVector turn, DoubleVector& sine, DoubleVector& cosine) {
  const DoubleTag d;
  const LongTag integers;
  const auto one = hn::Set(d, 1.0);
  const auto octant = hn::ShiftRight<29>(turn);
  auto rest = hn::Mul(double_of(hn::And(turn, hn::Set(integers, 0x1fffffffU))), hn::Set(d, 0x1p-29));
  const auto odd = hn::RebindMask(d, hn::TestBit(octant, hn::Set(integers, 1)));
  rest = hn::IfThenElse(odd, hn::Sub(one, rest), rest);
  const auto angle = hn::Mul(rest, hn::Set(d, 0.7853981633974483));
  const auto z = hn::Mul(angle, angle);
  auto s = hn::Set(d, sine_series[0]);
  for (std::size_t term = 1; term < sine_series.size(); ++term) {
    s = hn::Add(hn::Mul(s, z), hn::Set(d, sine_series[term]));
  }
  s = hn::Mul(s, angle);
  auto c = hn::Set(d, cosine_series[0]);
  for (std::size_t term = 1; term < cosine_series.size(); ++term) {
    c = hn::Add(hn::Mul(c, z), hn::Set(d, cosine_series[term]));
  }
  // Octants 1, 2, 5, 6 exchange the two; signs follow the quadrant.
  const auto exchanged =
      hn::RebindMask(d, hn::TestBit(hn::Add(octant, hn::Set(integers, 1)), hn::Set(integers, 2)));
  const auto four = hn::Set(integers, 4);
  const auto sine_sign = hn::ShiftLeft<61>(hn::And(octant, four));
  const auto cosine_sign = hn::ShiftLeft<61>(hn::And(hn::Add(octant, hn::Set(integers, 2)), four));
  sine = hn::Xor(hn::IfThenElse(exchanged, c, s), hn::BitCast(d, sine_sign));
  cosine = hn::Xor(hn::IfThenElse(exchanged, s, c), hn::BitCast(d, cosine_sign));
}

/// normal_from_bits of core/philox.h for Lanes(DoubleTag) pairs of words.
HWY_INLINE void normals_from_words(const std::uint32_t* first, const std::uint32_t* second,
                                   DoubleVector& normal0, DoubleVector& normal1) {
  const DoubleTag d;
  const LongTag integers;
  const hn::Rebind<std::uint32_t, DoubleTag> words;
  const auto bits = hn::PromoteTo(integers, hn::LoadU(words, first));
  const auto turn = hn::PromoteTo(integers, hn::LoadU(words, second));
  const auto uniform = hn::Mul(hn::Add(double_of(bits), hn::Set(d, 0.5)), hn::Set(d, 0x1p-32));
  const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), natural_log(uniform)));
  auto sine = radius;
  auto cosine = radius;
  sin_cos_of_turn(turn, sine, cosine);
  normal0 = hn::Mul(radius, cosine);
  normal1 = hn::Mul(radius, sine);
}

/// Numbers one call of normal_block makes.
HWY_INLINE std::size_t normal_block_size() {
  return 4 * hn::Lanes(WordTag());
}

/// numbers[i] = mean + deviation * number 4 * group + i of the key's sequence.
HWY_INLINE void normal_block(PhiloxKey key, std::uint64_t group, double mean, double deviation,
                             double* HWY_RESTRICT numbers) {
  const WordTag d;
  const DoubleTag doubles;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t step = hn::Lanes(doubles);
  const auto low = hn::Set(d, static_cast<std::uint32_t>(group));
  auto word0 = hn::Add(low, hn::Iota(d, 0));
  // The lower half of the group's number may have overflowed inside the block.
  auto word1 = hn::Add(hn::Set(d, static_cast<std::uint32_t>(group >> 32)),
                       hn::IfThenElseZero(hn::Lt(word0, low), hn::Set(d, 1)));
  auto word2 = hn::Zero(d);
  auto word3 = hn::Zero(d);
  simd::philox_lanes(d, key, word0, word1, word2, word3);
  HWY_ALIGN std::uint32_t words[4][hn::MaxLanes(WordTag())];
  hn::Store(word0, d, words[0]);
  hn::Store(word1, d, words[1]);
  hn::Store(word2, d, words[2]);
  hn::Store(word3, d, words[3]);
  const auto base = hn::Set(doubles, mean);
  const auto scale = hn::Set(doubles, deviation);
  for (std::size_t i = 0; i < lanes; i += step) {
    auto normal0 = hn::Zero(doubles);
    auto normal1 = normal0;
    auto normal2 = normal0;
    auto normal3 = normal0;
    normals_from_words(words[0] + i, words[1] + i, normal0, normal1);
    normals_from_words(words[2] + i, words[3] + i, normal2, normal3);
    hn::StoreInterleaved4(hn::Add(base, hn::Mul(scale, normal0)), hn::Add(base, hn::Mul(scale, normal1)),
                          hn::Add(base, hn::Mul(scale, normal2)), hn::Add(base, hn::Mul(scale, normal3)),
                          doubles, numbers + 4 * i);
  }
}

template <typename T>
void initialize_elements(const InitializeNormalArgs& args, std::uint64_t element, T* to, std::size_t count) {
  HWY_ALIGN double numbers[4 * hn::MaxLanes(WordTag())];
  std::size_t i = 0;
  while (i < count) {
    normal_block(args.key, element / 4, args.mean, args.deviation, numbers);
    const std::size_t skipped = element % 4;
    const std::size_t usable = std::min(normal_block_size() - skipped, count - i);
    for (std::size_t k = 0; k < usable; ++k) to[i + k] = from_double<T>(numbers[skipped + k]);
    i += usable;
    element += usable;
  }
}

/// Elements [begin, end) of args.to, counted row by row.
void initialize_range(const InitializeNormalArgs& args, std::int64_t begin, std::int64_t end) {
  // Rows that follow each other in the logical tensor are one run.
  const std::int64_t columns = args.row_step == args.to.shape[1] ? args.to.count() : args.to.shape[1];
  with_compute_type("initialize_normal", args.to.dtype, [&]<typename T>() {
    while (begin < end) {
      const std::int64_t row = begin / columns;
      const std::int64_t column = begin % columns;
      const std::int64_t count = std::min(columns - column, end - begin);
      const std::int64_t element = args.first_element + row * args.row_step + column;
      initialize_elements(args, static_cast<std::uint64_t>(element), pointer_to<T>(args.to) + begin,
                          static_cast<std::size_t>(count));
      begin += count;
    }
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(initialize_range);

void CpuDevice::initialize_normal(QueueKind, const InitializeNormalArgs& args) {
  check_initialize_normal(args);
  team_.parallel_for(args.to.count(), 1024, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(initialize_range)(args, begin, end);
  });
}

}  // namespace megalith
#endif
