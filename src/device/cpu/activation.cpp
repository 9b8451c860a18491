#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/activation.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// d/dx of x sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3): s + x s (1 - s) u'.
template <class D>
HWY_INLINE hn::Vec<D> gelu_tanh_derivative(D d, hn::Vec<D> x) {
  const auto square = hn::Mul(x, x);
  // Times log2(e), so that the exponential is a power of two.
  const auto u = hn::Mul(x, hn::MulAdd(square, hn::Set(d, 0.102943240F), hn::Set(d, 2.30220820F)));
  const auto slope = hn::MulAdd(square, hn::Set(d, 0.214064449F), hn::Set(d, 1.59576912F));
  const auto s = simd::sigmoid2(d, u);
  // Far out s (1 - s) is 0 but x^3 may overflow: 0 * infinity.
  const auto bend = hn::Mul(hn::Mul(x, s), hn::Sub(hn::Set(d, 1.0F), s));
  const auto far = hn::Gt(hn::Abs(x), hn::Set(d, 100.0F));
  return hn::MulAdd(bend, hn::IfThenElse(far, hn::Zero(d), slope), s);
}

// d/dx of x Phi(x): Phi(x) + x phi(x).
template <class D>
HWY_INLINE hn::Vec<D> gelu_erf_derivative(D d, hn::Vec<D> x) {
  const auto half = hn::Set(d, 0.5F);
  const auto distribution = hn::MulAdd(half, simd::erf(d, hn::Mul(x, hn::Set(d, 0.707106781F))), half);
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -20.0F)), hn::Set(d, 20.0F));
  const auto density =
      hn::Mul(hn::Set(d, 0.398942280F),
              simd::exp2_small(d, hn::Mul(hn::Set(d, -0.721347520F), hn::Mul(bounded, bounded))));
  const auto derivative = hn::MulAdd(bounded, density, distribution);
  return hn::IfThenElse(hn::Eq(x, x), derivative, x);
}

void activate(Activation kind, const Tensor& y, const Tensor& x, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - begin);
  with_compute_type("activation_forward", x.dtype, [&]<typename T>() HWY_ATTR {
    const simd::FloatTag d;
    T* const to = pointer_to<T>(y) + begin;
    const T* const from = pointer_to<const T>(x) + begin;
    switch (kind) {
      case Activation::none:
        return simd::map_elements(count, [](auto v) HWY_ATTR { return v; }, to, from);
      case Activation::gelu_tanh:
        return simd::map_elements(count, [d](auto v) HWY_ATTR { return simd::gelu_tanh(d, v); }, to, from);
      case Activation::gelu_erf:
        return simd::map_elements(count, [d](auto v) HWY_ATTR { return simd::gelu_erf(d, v); }, to, from);
    }
  });
}

void differentiate(Activation kind, const Tensor& x_grad, const Tensor& y_grad, const Tensor& x,
                   std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - begin);
  with_compute_type("activation_backward", x.dtype, [&]<typename T>() HWY_ATTR {
    const simd::FloatTag d;
    T* const to = pointer_to<T>(x_grad) + begin;
    const T* const grad = pointer_to<const T>(y_grad) + begin;
    const T* const from = pointer_to<const T>(x) + begin;
    switch (kind) {
      case Activation::none:
        return simd::map_elements(count, [](auto g) HWY_ATTR { return g; }, to, grad);
      case Activation::gelu_tanh:
        return simd::map_elements(
            count, [d](auto g, auto v) HWY_ATTR { return hn::Mul(g, gelu_tanh_derivative(d, v)); }, to, grad,
            from);
      case Activation::gelu_erf:
        return simd::map_elements(
            count, [d](auto g, auto v) HWY_ATTR { return hn::Mul(g, gelu_erf_derivative(d, v)); }, to, grad,
            from);
    }
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
namespace {
constexpr std::int64_t grain = 8192;
}  // namespace

HWY_EXPORT(activate);
HWY_EXPORT(differentiate);

void CpuDevice::activation_forward(QueueKind, Activation kind, const Tensor& y, const Tensor& x) {
  check_activation_forward(y, x);
  team_.parallel_for(x.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(activate)(kind, y, x, begin, end);
  });
}

void CpuDevice::activation_backward(QueueKind, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                                    const Tensor& x) {
  check_activation_backward(x_grad, y_grad, x);
  team_.parallel_for(x.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(differentiate)(kind, x_grad, y_grad, x, begin, end);
  });
}

}  // namespace megalith
#endif
