#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/block_norms.cpp"
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

// Squares are taken and added in float64, in an order that depends on the vector length alone.
template <typename T>
double sum_of_squares(const T* x, std::size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> half;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto a = hn::PromoteTo(d, simd::load(half, x + i));
    const auto b = hn::PromoteTo(d, simd::load(half, x + i + lanes));
    const auto c = hn::PromoteTo(d, simd::load(half, x + i + 2 * lanes));
    const auto e = hn::PromoteTo(d, simd::load(half, x + i + 3 * lanes));
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
    sum2 = hn::MulAdd(c, c, sum2);
    sum3 = hn::MulAdd(e, e, sum3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < count; ++i) {
    const double value = static_cast<double>(static_cast<float>(x[i]));
    sum += value * value;
  }
  return sum;
}

void norms_of_blocks(const Tensor& partials, const Tensor& x, std::int64_t begin, std::int64_t end) {
  with_compute_type("block_norms", x.dtype, [&]<typename T>() {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * norm_block;
      const std::int64_t left = x.shape[0] - first;
      pointer_to<double>(partials)[i] = sum_of_squares(
          pointer_to<const T>(x) + first, static_cast<std::size_t>(left < norm_block ? left : norm_block));
    }
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(norms_of_blocks);

void CpuDevice::block_norms(QueueKind, const Tensor& partials, const Tensor& x) {
  check_block_norms(partials, x);
  team_.parallel_for(partials.count(), 4, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(norms_of_blocks)(partials, x, begin, end);
  });
}

}  // namespace megalith
#endif
