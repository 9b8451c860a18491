// Elementary functions and storage conversions on Highway vectors of float32, shared by the cpu device's
// kernels. Included after hwy/highway.h by files that compile themselves once per instruction set.
//
// Polynomials are weighted minimax fits made for this project; errors were measured against float64
// (tests/device).

// Per-target include guard, as Highway prescribes.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#if defined(MEGALITH_DEVICE_CPU_SIMD_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_MATH_H
#undef MEGALITH_DEVICE_CPU_SIMD_MATH_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_MATH_H
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/dtype.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

// --- storage
// ---------------------------------------------------------------------------------------------------

/// Lanes(d) elements from `from`, as float32.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const BFloat16* from) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<std::uint16_t, D> halves;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

template <class D>
HWY_INLINE void store(hn::Vec<D> value, D d, float* to) {
  hn::StoreU(value, d, to);
}

/// Rounds to nearest, ties to even; NaN stays NaN. The bits of class BFloat16.
template <class D>
HWY_INLINE void store(hn::Vec<D> value, [[maybe_unused]] D d, BFloat16* to) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<std::uint16_t, D> halves;
  const auto bits = hn::BitCast(words, value);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(words, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff))));
  const auto quiet = hn::Or(upper, hn::Set(words, 0x40));
  const auto is_nan = hn::RebindMask(words, hn::IsNaN(value));
  hn::StoreU(hn::TruncateTo(halves, hn::IfThenElse(is_nan, quiet, rounded)), halves,
             reinterpret_cast<std::uint16_t*>(to));
}

/// The first `count` < Lanes(d) elements of `from`, the rest 0; nothing past them is read.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_n(D d, const T* from, std::size_t count) {
  HWY_ALIGN float buffer[hn::MaxLanes(D())] = {};
  for (std::size_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(from[i]);
  return hn::Load(d, buffer);
}

/// Stores the first `count` < Lanes(d) elements; nothing past them is written.
template <class D, typename T>
HWY_INLINE void store_n(hn::Vec<D> value, D d, T* to, std::size_t count) {
  HWY_ALIGN float buffer[hn::MaxLanes(D())];
  hn::Store(value, d, buffer);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(buffer[i]);
}

// --- functions
// -------------------------------------------------------------------------------------------------

/// 2^n for integers -252 <= n <= 254, in two factors so that results may be denormal or infinite: value *
/// 2^n.
template <class D>
HWY_INLINE hn::Vec<D> scale_by_power_of_two(D d, hn::Vec<D> value, hn::Vec<hn::RebindToSigned<D>> n) {
  const hn::RebindToSigned<D> integers;
  const auto half = hn::ShiftRight<1>(n);
  const auto rest = hn::Sub(n, half);
  const auto bias = hn::Set(integers, 127);
  const auto first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(rest, bias)));
  return hn::Mul(hn::Mul(value, first), second);
}

/// exp(x); 2 ulp. exp(-inf) = 0, overflow gives infinity, NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> integers;
  const auto clamped = hn::Min(hn::Max(x, hn::Set(d, -105.0F)), hn::Set(d, 90.0F));
  const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts, the first with trailing zeros so that n times it is exact.
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  auto p = hn::Set(d, 1.395059982e-03F);
  p = hn::MulAdd(p, r, hn::Set(d, 8.368954062e-03F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.166620597e-02F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.666651815e-01F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  const auto tail = hn::MulAdd(hn::Mul(r, r), p, r);
  const auto result = scale_by_power_of_two(d, hn::Add(tail, hn::Set(d, 1.0F)), hn::ConvertTo(integers, n));
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

/// The same for x <= 0 or NaN in fewer steps: results below exp(-87.3) become 0.
template <class D>
HWY_INLINE hn::Vec<D> exp_nonpositive(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> integers;
  const auto n = hn::Round(hn::Mul(hn::Max(x, hn::Set(d, -100.0F)), hn::Set(d, 1.44269504F)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  auto p = hn::Set(d, 1.395059982e-03F);
  p = hn::MulAdd(p, r, hn::Set(d, 8.368954062e-03F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.166620597e-02F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.666651815e-01F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  const auto tail = hn::MulAdd(hn::Mul(r, r), p, r);
  const auto power =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127))));
  const auto result = hn::Mul(hn::Add(tail, hn::Set(d, 1.0F)), power);
  // Beyond it the power of two would leave the exponent range; comparisons with NaN are false, so NaN passes.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.3F)), hn::Zero(d), result);
}

/// 2^x for x < 127 or NaN; 2 ulp. Results below 2^-126 become 0.
template <class D>
HWY_INLINE hn::Vec<D> exp2_small(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> words;
  // Adding it leaves round(x) + 127 in the lowest bits: the biased exponent of 2^round(x).
  const auto shift = hn::Set(d, 12582912.0F + 127.0F);
  const auto shifted = hn::Add(x, shift);
  const auto f = hn::Sub(x, hn::Sub(shifted, shift));
  auto p = hn::Set(d, 1.326472910e-03F);
  p = hn::MulAdd(p, f, hn::Set(d, 9.671512640e-03F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550733737e-02F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.402224209e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931469776e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(words, shifted)));
  // Comparisons with NaN are false, so NaN passes.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F)), hn::Mul(p, power));
}

/// Natural logarithm; 2 ulp. log(0) = -inf, log(x < 0) = NaN, log(inf) = inf.
template <class D>
HWY_INLINE hn::Vec<D> log(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> integers;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto smallest_normal = hn::Set(d, std::numeric_limits<float>::min());
  const auto denormal = hn::Lt(x, smallest_normal);
  const auto normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 8388608.0F)), x);
  const auto bits = hn::BitCast(integers, normal);
  // Exponent such that the significand lies in [sqrt(1/2), sqrt(2)).
  const auto shifted = hn::Sub(bits, hn::Set(integers, 0x3f3504f3));
  auto e = hn::ConvertTo(d, hn::ShiftRight<23>(shifted));
  const auto significand =
      hn::BitCast(d, hn::Add(hn::And(shifted, hn::Set(integers, 0x007fffff)), hn::Set(integers, 0x3f3504f3)));
  e = hn::Sub(e, hn::IfThenElseZero(denormal, hn::Set(d, 23.0F)));
  const auto f = hn::Sub(significand, hn::Set(d, 1.0F));
  auto p = hn::Set(d, 6.920816749e-02F);
  p = hn::MulAdd(p, f, hn::Set(d, -1.179781705e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.187478006e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, -1.238322780e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.421831101e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, -1.666929722e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.000224292e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, -2.499998659e-01F));
  p = hn::MulAdd(p, f, hn::Set(d, 3.333331048e-01F));
  const auto square = hn::Mul(f, f);
  auto tail = hn::Mul(hn::Mul(square, f), p);
  tail = hn::MulAdd(e, hn::Set(d, -2.12194440e-4F), tail);
  tail = hn::NegMulAdd(hn::Set(d, 0.5F), square, tail);
  auto result = hn::MulAdd(e, hn::Set(d, 0.693359375F), hn::Add(f, tail));
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  const auto not_a_number = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), result, not_a_number);
}

/// 1/x for x in [1, 2]; 1 ulp.
template <class D>
HWY_INLINE hn::Vec<D> reciprocal_of_near_one(D d, hn::Vec<D> x) {
#if HWY_TARGET <= HWY_AVX3
  // 14 bits, doubled by a step of Newton's: a division would take as long as a whole exponential.
  const auto r = hn::ApproximateReciprocal(x);
  return hn::MulAdd(r, hn::NegMulAdd(x, r, hn::Set(d, 1.0F)), r);
#else
  return hn::Div(hn::Set(d, 1.0F), x);
#endif
}

/// 1 / (1 + 2^-x); 3 ulp. 0 below x = -126.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid2(D d, hn::Vec<D> x) {
  const auto t = exp2_small(d, hn::Neg(hn::Abs(x)));
  const auto r = reciprocal_of_near_one(d, hn::Add(t, hn::Set(d, 1.0F)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(t, r), r);
}

/// tanh(x); 3 ulp.
template <class D>
HWY_INLINE hn::Vec<D> tanh(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto magnitude = hn::Abs(x);
  const auto z = hn::Mul(x, x);
  auto p = hn::Set(d, -5.608400796e-03F);
  p = hn::MulAdd(p, z, hn::Set(d, 2.055647038e-02F));
  p = hn::MulAdd(p, z, hn::Set(d, -5.371587723e-02F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.333117932e-01F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.333327472e-01F));
  const auto near = hn::MulAdd(hn::Mul(x, z), p, x);
  const auto growth = exp(d, hn::Add(magnitude, magnitude));
  const auto far = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(growth, one))), x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625F)), near, far);
}

/// The error function; 3 ulp.
template <class D>
HWY_INLINE hn::Vec<D> erf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto magnitude = hn::Abs(x);
  const auto z = hn::Mul(x, x);
  auto p = hn::Set(d, 7.889119297e-05F);
  p = hn::MulAdd(p, z, hn::Set(d, -8.020841051e-04F));
  p = hn::MulAdd(p, z, hn::Set(d, 5.189535208e-03F));
  p = hn::MulAdd(p, z, hn::Set(d, -2.685444430e-02F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.128360033e-01F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.761262596e-01F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.128379107e+00F));
  const auto near = hn::Mul(x, p);
  // -log2 erfc on [1, 4]; beyond 4 erf is 1 in float32.
  const auto a = hn::Min(magnitude, hn::Set(d, 4.0F));
  auto q = hn::Set(d, -2.711871228e-04F);
  q = hn::MulAdd(q, a, hn::Set(d, 4.276169241e-03F));
  q = hn::MulAdd(q, a, hn::Set(d, -3.160441334e-02F));
  q = hn::MulAdd(q, a, hn::Set(d, 1.489673091e-01F));
  q = hn::MulAdd(q, a, hn::Set(d, 9.203888037e-01F));
  q = hn::MulAdd(q, a, hn::Set(d, 1.626209128e+00F));
  q = hn::MulAdd(q, a, hn::Set(d, 4.507836590e-04F));
  const auto far = hn::CopySign(hn::Sub(one, exp2_small(d, hn::Neg(q))), x);
  const auto result = hn::IfThenElse(hn::Lt(magnitude, one), near, far);
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

/// GELU by its tanh approximation (Hendrycks and Gimpel 2016): x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).
template <class D>
HWY_INLINE hn::Vec<D> gelu_tanh(D d, hn::Vec<D> x) {
  // Times log2(e), so that the exponential is a power of two.
  const auto cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.102943240F), hn::Set(d, 2.30220820F));
  return hn::Mul(x, sigmoid2(d, hn::Mul(x, cubic)));
}

/// x Phi(x), Phi the normal distribution function.
template <class D>
HWY_INLINE hn::Vec<D> gelu_erf(D d, hn::Vec<D> x) {
  const auto half = hn::Mul(x, hn::Set(d, 0.5F));
  return hn::MulAdd(half, erf(d, hn::Mul(x, hn::Set(d, 0.707106781F))), half);
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
