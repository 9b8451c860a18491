#include <vector>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void add_column_sums(const HostView& view, const Tensor& sums, const Tensor& x) {
  with_compute_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::int64_t rows = x.shape[0];
    const std::int64_t columns = x.shape[1];
    const T* in = view.pointer<T>(x);
    T* out = view.pointer<T>(sums);
    std::vector<double> totals(static_cast<std::size_t>(columns), 0.0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        totals[static_cast<std::size_t>(column)] += to_double(in[row * columns + column]);
      }
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      out[column] = from_double<T>(to_double(out[column]) + totals[static_cast<std::size_t>(column)]);
    }
  });
}

}  // namespace megalith::reference
