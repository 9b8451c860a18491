#include "core/philox.h"
#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

double normal_of_element(std::int64_t element, PhiloxKey key) {
  const std::uint64_t group = static_cast<std::uint64_t>(element) / 4;
  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0}, key);
  const std::size_t number = static_cast<std::size_t>(element % 4);
  const std::size_t pair = number / 2 * 2;
  return normal_from_bits(words[pair], words[pair + 1])[number % 2];
}

}  // namespace

void initialize_normal(const HostView& view, const InitializeNormalArgs& args) {
  with_float_type(args.to.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* out = view.pointer<T>(args.to);
    const std::int64_t columns = args.to.shape[1];
    for (std::int64_t row = 0; row < args.to.shape[0]; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t element = args.first_element + row * args.row_step + column;
        out[row * columns + column] =
            from_double<T>(args.mean + args.deviation * normal_of_element(element, args.key));
      }
    }
  });
}

}  // namespace megalith::reference
