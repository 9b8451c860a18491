#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/strided_runs.h"

namespace megalith {
namespace {

constexpr std::int64_t grain = 32768;

template <typename T>
void fill_runs(ThreadTeam& team, const Tensor& to, T value) {
  T* const base = pointer_to<T>(to);
  using Bits = std::array<std::byte, sizeof(T)>;
  const bool all_bits_zero = std::bit_cast<Bits>(value) == Bits{};
  StridedRuns<1>({to}).run(team, grain, [&](const std::array<std::int64_t, 1>& offsets, std::int64_t length) {
    T* const start = base + offsets[0];
    // memset writes large blocks without reading them first.
    if (all_bits_zero) {
      std::memset(static_cast<void*>(start), 0, static_cast<std::size_t>(length) * sizeof(T));
    } else {
      std::fill_n(start, length, value);
    }
  });
}

}  // namespace

void CpuDevice::fill(QueueKind, const Tensor& to, double value) {
  check_fill(to);
  switch (to.dtype) {
    case DType::float64:
      return fill_runs(team_, to, value);
    case DType::float32:
      return fill_runs(team_, to, static_cast<float>(value));
    case DType::bfloat16:
      return fill_runs(team_, to, from_double<BFloat16>(value));
    case DType::float16:
      return fill_runs(team_, to, from_double<Float16>(value));
    case DType::int64:
      return fill_runs(team_, to, static_cast<std::int64_t>(value));
    case DType::int32:
      return fill_runs(team_, to, static_cast<std::int32_t>(value));
    case DType::uint16:
      return fill_runs(team_, to, static_cast<std::uint16_t>(value));
    case DType::uint8:
      return fill_runs(team_, to, static_cast<std::uint8_t>(value));
  }
}

}  // namespace megalith
