#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/add_column_sums.cpp"
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

// Columns whose sums are kept in the first-level cache while all rows pass by.
constexpr std::int64_t strip = 1024;

template <typename T>
void add_strip(float* sums, const T* x, std::int64_t rows, std::int64_t stride, std::size_t count) {
  HWY_ALIGN float strip_sums[strip] = {};
  const auto add8 = [](auto sum, auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h) HWY_ATTR {
    const auto left = hn::Add(hn::Add(a, b), hn::Add(c, d));
    const auto right = hn::Add(hn::Add(e, f), hn::Add(g, h));
    return hn::Add(sum, hn::Add(left, right));
  };
  const auto add1 = [](auto sum, auto a) HWY_ATTR { return hn::Add(sum, a); };
  std::int64_t row = 0;
  for (; row + 8 <= rows; row += 8, x += 8 * stride) {
    simd::map_elements(count, add8, strip_sums, strip_sums, x, x + stride, x + 2 * stride, x + 3 * stride,
                       x + 4 * stride, x + 5 * stride, x + 6 * stride, x + 7 * stride);
  }
  for (; row < rows; ++row, x += stride) simd::map_elements(count, add1, strip_sums, strip_sums, x);
  simd::map_elements(count, add1, sums, sums, strip_sums);
}

void add_sums_of_columns(const Tensor& sums, const Tensor& x, std::int64_t begin, std::int64_t end) {
  with_compute_type("add_column_sums", x.dtype, [&]<typename T>() {
    const std::int64_t columns = x.shape[1];
    for (; begin < end; begin += strip) {
      const std::int64_t count = end - begin < strip ? end - begin : strip;
      add_strip(pointer_to<float>(sums) + begin, pointer_to<const T>(x) + begin, x.shape[0], columns,
                static_cast<std::size_t>(count));
    }
  });
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {
HWY_EXPORT(add_sums_of_columns);

// Each thread owns columns, so that sums do not depend on the number of threads.
void CpuDevice::add_column_sums(QueueKind, const Tensor& sums, const Tensor& x) {
  check_add_column_sums(sums, x);
  team_.parallel_for(x.shape[1], 64, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_sums_of_columns)(sums, x, begin, end);
  });
}

}  // namespace megalith
#endif
