#include "device/cpu/matmul_finish.h"

#include <cstddef>

#include "device/cpu/cpu_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/matmul_finish.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which sets the target up.
#include "device/cpu/simd_math.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> activate(D d, Activation activation, hn::Vec<D> x) {
  if (activation == Activation::gelu_tanh) return simd::gelu_tanh(d, x);
  if (activation == Activation::gelu_erf) return simd::gelu_erf(d, x);
  return x;
}

template <typename From, typename To, typename Bias>
void finish_row(const From* from, const To* before, const Bias* bias, Activation activation,
                To* pre_activation, To* to, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto value = simd::load(d, from + i);
    if (before != nullptr) value = hn::Add(value, simd::load(d, before + i));
    if (bias != nullptr) value = hn::Add(value, simd::load(d, bias + i));
    if (pre_activation != nullptr) simd::store(value, d, pre_activation + i);
    simd::store(activate(d, activation, value), d, to + i);
  }
  if (i == count) return;
  const std::size_t rest = count - i;
  auto value = simd::load_n(d, from + i, rest);
  if (before != nullptr) value = hn::Add(value, simd::load_n(d, before + i, rest));
  if (bias != nullptr) value = hn::Add(value, simd::load_n(d, bias + i, rest));
  if (pre_activation != nullptr) simd::store_n(value, d, pre_activation + i, rest);
  simd::store_n(activate(d, activation, value), d, to + i, rest);
}

template <typename To, typename Bias>
void finish_rows(const MatmulArgs& args, const MatmulSums& sums) {
  const bool in_place =
      static_cast<const void*>(sums.sums) ==
      static_cast<const void*>(pointer_to<To>(args.c) + sums.row * args.c.stride(0) + sums.column);
  const Bias* bias = args.bias ? pointer_to<Bias>(args.bias) + sums.column : nullptr;
  for (std::int64_t i = 0; i < sums.rows; ++i) {
    const float* from = sums.sums + i * sums.sums_step;
    To* to = pointer_to<To>(args.c) + (sums.row + i) * args.c.stride(0) + sums.column;
    To* pre = args.pre_activation ? pointer_to<To>(args.pre_activation) +
                                        (sums.row + i) * args.pre_activation.stride(0) + sums.column
                                  : nullptr;
    finish_row(from, args.accumulate && !in_place ? to : nullptr, bias, args.activation, pre, to,
               static_cast<std::size_t>(sums.columns));
  }
}

void finish(const MatmulArgs& args, const MatmulSums& sums) {
  const bool half_bias = args.bias && args.bias.dtype == DType::bfloat16;
  if (args.c.dtype == DType::bfloat16) {
    finish_rows<BFloat16, BFloat16>(args, sums);
  } else if (half_bias) {
    finish_rows<float, BFloat16>(args, sums);
  } else {
    finish_rows<float, float>(args, sums);
  }
}

template <typename T>
void activate_rows(const MatmulArgs& args, const Tensor& from, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    finish_row<T, T, T>(pointer_to<T>(from) + i * from.stride(0), nullptr, nullptr, args.activation, nullptr,
                        pointer_to<T>(args.c) + i * args.c.stride(0),
                        static_cast<std::size_t>(args.c.shape[1]));
  }
}

void activate_all(const MatmulArgs& args, const Tensor& from, std::int64_t begin, std::int64_t end) {
  if (args.c.dtype == DType::bfloat16) {
    activate_rows<BFloat16>(args, from, begin, end);
  } else {
    activate_rows<float>(args, from, begin, end);
  }
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(finish);
HWY_EXPORT(activate_all);

void finish_matmul(const MatmulArgs& args, const MatmulSums& sums) {
  HWY_DYNAMIC_DISPATCH(finish)(args, sums);
}

void activate_matmul(const MatmulArgs& args, const Tensor& from, std::int64_t row_begin,
                     std::int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(activate_all)(args, from, row_begin, row_end);
}

}  // namespace megalith
#endif
