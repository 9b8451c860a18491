#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/sgd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/optimizer_step.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void descend(const SgdArgs& args, const SgdStep& step, std::int64_t begin, std::int64_t end) {
  const simd::FloatTag d;
  const auto gradient_scale = hn::Set(d, step.gradient_scale);
  const auto rate = hn::Set(d, step.rate);
  const auto momentum = hn::Set(d, step.momentum);
  const auto weight_decay = hn::Set(d, step.weight_decay);
  const auto decayed = [=](auto g, auto w)
                           HWY_ATTR { return hn::MulAdd(weight_decay, w, hn::Mul(g, gradient_scale)); };
  float* const weights = pointer_to<float>(args.weights) + begin;
  const float* const gradient = pointer_to<const float>(args.gradient) + begin;
  const auto count = static_cast<std::size_t>(end - begin);
  if (args.momentum_buffer) {
    float* const buffer = pointer_to<float>(args.momentum_buffer) + begin;
    simd::map_elements(
        count, [=](auto b, auto g, auto w) HWY_ATTR { return hn::MulAdd(momentum, b, decayed(g, w)); },
        buffer, buffer, gradient, weights);
    simd::map_elements(
        count, [=](auto w, auto b) HWY_ATTR { return hn::NegMulAdd(rate, b, w); }, weights, weights, buffer);
  } else {
    simd::map_elements(
        count, [=](auto w, auto g) HWY_ATTR { return hn::NegMulAdd(rate, decayed(g, w), w); }, weights,
        weights, gradient);
  }
  if (!args.compute_copy) return;
  with_compute_type("sgd", args.compute_copy.dtype, [&]<typename T>() HWY_ATTR {
    simd::map_elements(
        count, [](auto w) HWY_ATTR { return w; }, pointer_to<T>(args.compute_copy) + begin, weights);
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(descend);

void CpuDevice::sgd(QueueKind, const SgdArgs& args) {
  check_sgd(args);
  require_float32("sgd", args.weights.dtype);
  const double gradient_scale = *pointer_to<const double>(args.gradient_scale);
  if (gradient_scale < 0.0) return;
  const SgdStep step{.gradient_scale = static_cast<float>(gradient_scale),
                     .rate = static_cast<float>(*pointer_to<const double>(args.learning_rate) * args.lr_mult),
                     .momentum = static_cast<float>(args.momentum),
                     .weight_decay = static_cast<float>(args.weight_decay)};
  // In blocks that stay in the cache from one pass to the next.
  constexpr std::int64_t block = 4096;
  team_.parallel_for(args.weights.count(), block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += block) {
      HWY_DYNAMIC_DISPATCH(descend)(args, step, i, std::min(i + block, end));
    }
  });
}

}  // namespace megalith
#endif
