#include <algorithm>
#include <array>

#include "device/check.h"
#include "device/cpu/compute_types.h"
#include "device/cpu/cpu_device.h"

namespace megalith {
namespace {

// Numbers 4 * group .. 4 * group + 3 of the key's sequence.
std::array<double, 4> normal_group(PhiloxKey key, std::uint64_t group) {
  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0}, key);
  const std::array<double, 2> first = normal_from_bits(words[0], words[1]);
  const std::array<double, 2> second = normal_from_bits(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
}

template <typename T>
void initialize_run(const InitializeNormalArgs& args, std::uint64_t element, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count;) {
    const std::array<double, 4> numbers = normal_group(args.key, element / 4);
    for (std::uint64_t k = element % 4; k < 4 && i < count; ++k, ++i, ++element) {
      to[i] = from_double<T>(args.mean + args.deviation * numbers[k]);
    }
  }
}

}  // namespace

void CpuDevice::initialize_normal(QueueKind, const InitializeNormalArgs& args) {
  check_initialize_normal(args);
  const std::int64_t columns = args.to.shape[1];
  with_compute_type("initialize_normal", args.to.dtype, [&]<typename T>() {
    T* const to = pointer_to<T>(args.to);
    team_.parallel_for(args.to.count(), 1024, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t row = begin / columns;
        const std::int64_t column = begin % columns;
        const std::int64_t count = std::min(columns - column, end - begin);
        const std::int64_t element = args.first_element + row * args.row_step + column;
        initialize_run(args, static_cast<std::uint64_t>(element), to + begin, count);
        begin += count;
      }
    });
  });
}

}  // namespace megalith
