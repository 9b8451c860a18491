#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/add.cpp"
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

void add_elements(const Tensor& to, const Tensor& a, float alpha, const Tensor& b, float beta,
                  std::int64_t begin, std::int64_t end) {
  const simd::FloatTag d;
  const auto alphas = hn::Set(d, alpha);
  const auto betas = hn::Set(d, beta);
  const auto sum = [=](auto x, auto y) HWY_ATTR { return hn::MulAdd(alphas, x, hn::Mul(betas, y)); };
  with_compute_type("add", to.dtype, [&]<typename To>() HWY_ATTR {
    with_compute_type("add", a.dtype, [&]<typename A>() HWY_ATTR {
      with_compute_type("add", b.dtype, [&]<typename B>() HWY_ATTR {
        simd::map_elements(static_cast<std::size_t>(end - begin), sum, pointer_to<To>(to) + begin,
                           pointer_to<const A>(a) + begin, pointer_to<const B>(b) + begin);
      });
    });
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(add_elements);

void CpuDevice::add(QueueKind, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
                    double beta) {
  check_add(to, a, b);
  team_.parallel_for(to.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_elements)
    (to, a, static_cast<float>(alpha), b, static_cast<float>(beta), begin, end);
  });
}

}  // namespace megalith
#endif
