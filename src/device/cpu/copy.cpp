#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/copy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "device/cpu/simd_loop.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {
namespace {

void widen(float* to, const BFloat16* from, std::size_t count) {
  simd::map_elements(count, [](auto value) HWY_ATTR { return value; }, to, from);
}

void narrow(BFloat16* to, const float* from, std::size_t count) {
  simd::map_elements(count, [](auto value) HWY_ATTR { return value; }, to, from);
}

}  // namespace
}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cstring>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/strided_runs.h"

namespace megalith {
namespace {

HWY_EXPORT(widen);
HWY_EXPORT(narrow);

constexpr std::int64_t grain = 32768;

template <typename To, typename From>
void convert_elements(To* to, const From* from, std::int64_t count) {
  const auto length = static_cast<std::size_t>(count);
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(static_cast<void*>(to), from, length * sizeof(To));
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, BFloat16>) {
    HWY_DYNAMIC_DISPATCH(widen)(to, from, length);
  } else if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<From, float>) {
    HWY_DYNAMIC_DISPATCH(narrow)(to, from, length);
  } else {
    // float64 and float16 come and go with files and tests only.
    for (std::size_t i = 0; i < length; ++i) {
      if constexpr (std::is_same_v<From, double>) {
        to[i] = from_double<To>(from[i]);
      } else {
        to[i] = static_cast<To>(static_cast<float>(from[i]));
      }
    }
  }
}

template <typename To, typename From>
void copy_runs(ThreadTeam& team, const Tensor& to, const Tensor& from) {
  To* const to_base = pointer_to<To>(to);
  const From* const from_base = pointer_to<const From>(from);
  StridedRuns<2>({to, from})
      .run(team, grain, [&](const std::array<std::int64_t, 2>& offsets, std::int64_t length) {
        convert_elements(to_base + offsets[0], from_base + offsets[1], length);
      });
}

template <typename To>
void copy_to(ThreadTeam& team, const Tensor& to, const Tensor& from) {
  switch (from.dtype) {
    case DType::float64:
      return copy_runs<To, double>(team, to, from);
    case DType::float32:
      return copy_runs<To, float>(team, to, from);
    case DType::bfloat16:
      return copy_runs<To, BFloat16>(team, to, from);
    default:
      return copy_runs<To, Float16>(team, to, from);
  }
}

}  // namespace

void CpuDevice::copy(QueueKind, const Tensor& to, const Tensor& from) {
  check_copy(to, from);
  switch (to.dtype) {
    case DType::float64:
      return copy_to<double>(team_, to, from);
    case DType::float32:
      return copy_to<float>(team_, to, from);
    case DType::bfloat16:
      return copy_to<BFloat16>(team_, to, from);
    case DType::float16:
      return copy_to<Float16>(team_, to, from);
    case DType::int64:
      return copy_runs<std::int64_t, std::int64_t>(team_, to, from);
    case DType::int32:
      return copy_runs<std::int32_t, std::int32_t>(team_, to, from);
    case DType::uint16:
      return copy_runs<std::uint16_t, std::uint16_t>(team_, to, from);
    case DType::uint8:
      return copy_runs<std::uint8_t, std::uint8_t>(team_, to, from);
  }
}

}  // namespace megalith
#endif
