#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cross_entropy.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A block of logits is read twice, for its maximum and for its sum; the second time from the first-level
// cache.
constexpr std::int64_t block = 2048;

template <typename T>
simd::FloatVector maximum(const T* logits, std::size_t count) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto max0 = lowest;
  auto max1 = lowest;
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    max0 = hn::Max(max0, simd::load(d, logits + i));
    max1 = hn::Max(max1, simd::load(d, logits + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) max0 = hn::Max(max0, simd::load(d, logits + i));
  if (i < count) {
    const auto rest = simd::load_n(d, logits + i, count - i);
    max1 = hn::Max(max1, hn::IfThenElse(hn::FirstN(d, count - i), rest, lowest));
  }
  return hn::Max(max0, max1);
}

// Sum of exp(logit - max).
template <typename T>
float exponential_sum(const T* logits, std::size_t count, float max) {
  const simd::FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto maxima = hn::Set(d, max);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    // The next block comes from memory while this one is worked on.
    hwy::Prefetch(logits + i + block);
    hwy::Prefetch(logits + i + lanes + block);
    sum0 = hn::Add(sum0, simd::exp_nonpositive(d, hn::Sub(simd::load(d, logits + i), maxima)));
    sum1 = hn::Add(sum1, simd::exp_nonpositive(d, hn::Sub(simd::load(d, logits + i + lanes), maxima)));
  }
  for (; i + lanes <= count; i += lanes) {
    sum0 = hn::Add(sum0, simd::exp_nonpositive(d, hn::Sub(simd::load(d, logits + i), maxima)));
  }
  if (i < count) {
    const auto rest = simd::exp_nonpositive(d, hn::Sub(simd::load_n(d, logits + i, count - i), maxima));
    sum1 = hn::Add(sum1, hn::IfThenElseZero(hn::FirstN(d, count - i), rest));
  }
  return simd::sum_of_lanes(hn::Add(sum0, sum1));
}

// Online softmax statistics (Milakov and Gimelshein 2018): a greater maximum rescales the sum so far.
template <typename T>
void row_statistics(const CrossEntropyArgs& args, std::int64_t row) {
  const T* const logits = pointer_to<const T>(args.logits) + row * args.logits.stride(0);
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;
  for (std::int64_t column = 0; column < args.columns; column += block) {
    const std::int64_t left = args.columns - column;
    const auto count = static_cast<std::size_t>(left < block ? left : block);
    const float block_max = simd::max_of_lanes(maximum(logits + column, count));
    if (block_max > max) {
      sum *= std::exp(max - block_max);
      max = block_max;
    }
    // While every logit is -infinity the sum is 0; a NaN among them must not be lost.
    const float base = std::isinf(max) && max < 0.0F ? 0.0F : max;
    sum += exponential_sum(logits + column, count, base);
  }
  // Vector maxima may pass over a NaN, the sum never does.
  if (std::isnan(sum) && std::isfinite(max)) max = sum;
  const std::int64_t target = pointer_to<const std::int32_t>(args.targets)[row] - args.first_column;
  const bool here = target >= 0 && target < args.columns;
  pointer_to<float>(args.row_max)[row] = max;
  pointer_to<float>(args.row_sum)[row] = sum;
  pointer_to<float>(args.target_logit)[row] = here ? static_cast<float>(logits[target]) : 0.0F;
}

void statistics(const CrossEntropyArgs& args, std::int64_t begin, std::int64_t end) {
  with_compute_type("cross_entropy_forward", args.logits.dtype, [&]<typename T>() {
    for (std::int64_t row = begin; row < end; ++row) row_statistics<T>(args, row);
  });
}

template <typename T>
void row_gradient(const CrossEntropyBackwardArgs& args, std::int64_t row, double scale) {
  const simd::FloatTag d;
  T* const logits = pointer_to<T>(args.logits) + row * args.logits.stride(0);
  const auto columns = static_cast<std::size_t>(args.columns);
  const auto padding = static_cast<std::size_t>(args.logits.shape[1] - args.columns);
  const double weight = static_cast<double>(pointer_to<const float>(args.weights)[row]) * scale;
  if (weight == 0.0) {
    std::memset(static_cast<void*>(logits), 0, (columns + padding) * sizeof(T));
    return;
  }
  const auto max = hn::Set(d, pointer_to<const float>(args.row_max)[row]);
  const float row_sum = pointer_to<const float>(args.row_sum)[row];
  const auto factor = hn::Set(d, static_cast<float>(weight / static_cast<double>(row_sum)));
  const auto gradient = [=](auto logit) HWY_ATTR {
    return hn::Mul(simd::exp_nonpositive(d, hn::Sub(logit, max)), factor);
  };
  const std::int64_t target = pointer_to<const std::int32_t>(args.targets)[row] - args.first_column;
  const bool here = target >= 0 && target < args.columns;
  // The target's own element is computed before the row is overwritten: p - 1, rounded once.
  float target_gradient = 0.0F;
  if (here) {
    const float logit = static_cast<float>(logits[target]);
    const double p = std::exp(static_cast<double>(logit) - static_cast<double>(hn::GetLane(max))) /
                     static_cast<double>(row_sum);
    target_gradient = static_cast<float>((p - 1.0) * weight);
  }
  simd::map_elements(columns, gradient, logits, logits);
  if (here) logits[target] = static_cast<T>(target_gradient);
  std::memset(static_cast<void*>(logits + columns), 0, padding * sizeof(T));
}

void gradients(const CrossEntropyBackwardArgs& args, std::int64_t begin, std::int64_t end) {
  const double scale = *pointer_to<const double>(args.scale);
  with_compute_type("cross_entropy_backward", args.logits.dtype, [&]<typename T>() {
    for (std::int64_t row = begin; row < end; ++row) row_gradient<T>(args, row, scale);
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(statistics);
HWY_EXPORT(gradients);

void CpuDevice::cross_entropy_forward(QueueKind, const CrossEntropyArgs& args) {
  check_cross_entropy_forward(args);
  team_.parallel_for(
      args.logits.shape[0], 4096 / (args.columns + 1) + 1,
      [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(statistics)(args, begin, end); });
}

void CpuDevice::cross_entropy_loss(QueueKind, const CrossEntropyLossArgs& args) {
  check_cross_entropy_loss(args);
  require_float32("cross_entropy_loss", args.losses.dtype);
  const float* const row_max = pointer_to<const float>(args.row_max);
  const float* const row_sum = pointer_to<const float>(args.row_sum);
  const float* const target_logit = pointer_to<const float>(args.target_logit);
  float* const losses = pointer_to<float>(args.losses);
  team_.parallel_for(args.losses.count(), 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      losses[r] = std::log(row_sum[r]) + (row_max[r] - target_logit[r]);
  });
}

void CpuDevice::cross_entropy_backward(QueueKind, const CrossEntropyBackwardArgs& args) {
  check_cross_entropy_backward(args);
  const std::int64_t columns = args.logits.shape[1];
  team_.parallel_for(
      args.logits.shape[0], 4096 / (columns + 1) + 1,
      [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(gradients)(args, begin, end); });
}

}  // namespace megalith
#endif
