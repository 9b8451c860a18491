// Loops over the elements of arrays on Highway vectors of float32, on top of simd_math.h's loads and stores.
// Included after hwy/highway.h by files that compile themselves once per instruction set.
//
// An element's result depends on its value alone, never on where a loop was cut.

// Per-target include guard, as Highway prescribes.
#if defined(MEGALITH_DEVICE_CPU_SIMD_LOOP_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGALITH_DEVICE_CPU_SIMD_LOOP_H
#undef MEGALITH_DEVICE_CPU_SIMD_LOOP_H
#else
#define MEGALITH_DEVICE_CPU_SIMD_LOOP_H
#endif

#include <cstddef>

#include "device/cpu/simd_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE::simd {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

/// to[i] = operation(from[i]...) for i < count. `to` may be one of the inputs.
template <typename Operation, typename To, typename... From>
HWY_INLINE void map_elements(std::size_t count, const Operation& operation, To* to, const From*... from) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(operation(load(d, from + i)...), d, to + i);
  if (i < count) store_n(operation(load_n(d, from + i, count - i)...), d, to + i, count - i);
}

// Highway's own MaxOfLanes starts from the lowest finite number on its emulated target, so it loses
// -infinity.
HWY_INLINE float max_of_lanes(FloatVector value) {
  const FloatTag d;
  HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())];
  hn::Store(value, d, lanes);
  float greatest = lanes[0];
  for (std::size_t i = 1; i < hn::Lanes(d); ++i) greatest = lanes[i] > greatest ? lanes[i] : greatest;
  return greatest;
}

HWY_INLINE float sum_of_lanes(FloatVector value) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), value));
}

}  // namespace megalith::HWY_NAMESPACE::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
