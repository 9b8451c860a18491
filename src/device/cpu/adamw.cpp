#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/optimizer_step.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Every array is read once and written once.
template <bool with_copy, typename Copy>
void update_elements(const AdamWElements& args, const AdamWStep& step, std::size_t count, Copy* copy) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto gradient_scale = hn::Set(d, step.gradient_scale);
  const auto beta1 = hn::Set(d, step.beta1);
  const auto beta2 = hn::Set(d, step.beta2);
  const auto rest1 = hn::Set(d, step.rest1);
  const auto rest2 = hn::Set(d, step.rest2);
  const auto inverse_root = hn::Set(d, step.inverse_root_of_correction2);
  const auto epsilon = hn::Set(d, step.epsilon);
  const auto step_size = hn::Set(d, step.step_size);
  const auto decay = hn::Set(d, step.decay);
  const auto next_first = [=](auto m, auto g) HWY_ATTR { return hn::MulAdd(beta1, m, hn::Mul(rest1, g)); };
  const auto next_second = [=](auto v, auto g)
                               HWY_ATTR { return hn::MulAdd(beta2, v, hn::Mul(rest2, hn::Mul(g, g))); };
  const auto next_weight = [=](auto w, auto m, auto v) HWY_ATTR {
    const auto denominator = hn::MulAdd(hn::Sqrt(v), inverse_root, epsilon);
    return hn::Sub(w, hn::MulAdd(step_size, hn::Div(m, denominator), hn::Mul(decay, w)));
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto g = hn::Mul(hn::LoadU(d, args.gradient + i), gradient_scale);
    const auto m = next_first(hn::LoadU(d, args.exp_avg + i), g);
    const auto v = next_second(hn::LoadU(d, args.exp_avg_sq + i), g);
    const auto w = next_weight(hn::LoadU(d, args.weights + i), m, v);
    hn::StoreU(m, d, args.exp_avg + i);
    hn::StoreU(v, d, args.exp_avg_sq + i);
    hn::StoreU(w, d, args.weights + i);
    if constexpr (with_copy) simd::store(w, d, copy + i);
  }
  if (i < count) {
    const std::size_t rest = count - i;
    const auto g = hn::Mul(simd::load_n(d, args.gradient + i, rest), gradient_scale);
    const auto m = next_first(simd::load_n(d, args.exp_avg + i, rest), g);
    const auto v = next_second(simd::load_n(d, args.exp_avg_sq + i, rest), g);
    const auto w = next_weight(simd::load_n(d, args.weights + i, rest), m, v);
    simd::store_n(m, d, args.exp_avg + i, rest);
    simd::store_n(v, d, args.exp_avg_sq + i, rest);
    simd::store_n(w, d, args.weights + i, rest);
    if constexpr (with_copy) simd::store_n(w, d, copy + i, rest);
  }
}

void update(const AdamWArgs& args, const AdamWStep& step, std::int64_t begin, std::int64_t end) {
  const AdamWElements elements{
      pointer_to<float>(args.weights) + begin, pointer_to<const float>(args.gradient) + begin,
      pointer_to<float>(args.exp_avg) + begin, pointer_to<float>(args.exp_avg_sq) + begin};
  const auto count = static_cast<std::size_t>(end - begin);
  if (!args.compute_copy) return update_elements<false, float>(elements, step, count, nullptr);
  with_compute_type("adamw", args.compute_copy.dtype, [&]<typename T>() {
    update_elements<true>(elements, step, count, pointer_to<T>(args.compute_copy) + begin);
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(update);

void CpuDevice::adamw(QueueKind, const AdamWArgs& args) {
  check_adamw(args);
  require_float32("adamw", args.weights.dtype);
  const double gradient_scale = *pointer_to<const double>(args.gradient_scale);
  if (gradient_scale < 0.0) return;
  const auto t = static_cast<double>(*pointer_to<const std::int64_t>(args.step));
  const double rate = *pointer_to<const double>(args.learning_rate) * args.lr_mult;
  const AdamWStep step{
      .gradient_scale = static_cast<float>(gradient_scale),
      .beta1 = static_cast<float>(args.beta1),
      .beta2 = static_cast<float>(args.beta2),
      .rest1 = static_cast<float>(1.0 - args.beta1),
      .rest2 = static_cast<float>(1.0 - args.beta2),
      .inverse_root_of_correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(args.beta2, t))),
      .epsilon = static_cast<float>(args.epsilon),
      .step_size = static_cast<float>(rate / (1.0 - std::pow(args.beta1, t))),
      .decay = static_cast<float>(rate * args.weight_decay)};
  team_.parallel_for(args.weights.count(), 4096, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(update)(args, step, begin, end);
  });
}

}  // namespace megalith
#endif
