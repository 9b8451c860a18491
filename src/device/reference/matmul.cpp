#include <algorithm>
#include <span>
#include <vector>

#include "device/reference/activation_functions.h"
#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

/// op(operand) as contiguous float64 rows, so that one loop serves all layouts.
template <typename T>
std::vector<double> unpacked(const HostView& view, const MatmulOperand& operand) {
  const std::int64_t rows = operand.data.shape[0];
  const std::int64_t columns = operand.data.shape[1];
  const T* in = view.pointer<T>(operand.data);
  std::vector<double> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* in_row = in + row * operand.data.stride(0);
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t place = operand.transposed ? column * rows + row : row * columns + column;
      out[static_cast<std::size_t>(place)] = to_double(in_row[column]);
    }
  }
  return out;
}

template <typename T>
void finish_row(const HostView& view, const MatmulArgs& args, std::int64_t row, std::int64_t first_column,
                std::span<const double> sums) {
  const T* bias = view.pointer<T>(args.bias);
  T* c = view.pointer<T>(args.c) + row * args.c.stride(0) + first_column;
  T* pre_activation = args.pre_activation ? view.pointer<T>(args.pre_activation) +
                                                row * args.pre_activation.stride(0) + first_column
                                          : nullptr;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    const double product = args.alpha * sums[j];
    if (args.accumulate) {
      c[j] = from_double<T>(to_double(c[j]) + product);
      continue;
    }
    const double sum =
        bias == nullptr ? product : product + to_double(bias[first_column + static_cast<std::int64_t>(j)]);
    if (pre_activation != nullptr) pre_activation[j] = from_double<T>(sum);
    c[j] = from_double<T>(activate(args.activation, sum));
  }
}

// Panels of b that stay in cache, and a few rows of c at a time so that each element of b loaded is used
// often.
constexpr std::int64_t panel_columns = 256;
constexpr std::int64_t block_rows = 4;

template <typename T>
void multiply(const HostView& view, const MatmulArgs& args) {
  const std::int64_t m = args.c.shape[0];
  const std::int64_t n = args.c.shape[1];
  const std::int64_t k = args.a.data.shape[args.a.transposed ? 0 : 1];
  const std::vector<double> a = unpacked<T>(view, args.a);
  const std::vector<double> b = unpacked<T>(view, args.b);
  std::vector<double> sums(static_cast<std::size_t>(block_rows * panel_columns));
  for (std::int64_t first_column = 0; first_column < n; first_column += panel_columns) {
    const std::int64_t columns = std::min(panel_columns, n - first_column);
    for (std::int64_t first_row = 0; first_row < m; first_row += block_rows) {
      const std::int64_t rows = std::min(block_rows, m - first_row);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t i = 0; i < k; ++i) {
        const double* b_row = b.data() + i * n + first_column;
        for (std::int64_t row = 0; row < rows; ++row) {
          const double factor = a[static_cast<std::size_t>((first_row + row) * k + i)];
          double* sum = sums.data() + row * panel_columns;
          for (std::int64_t column = 0; column < columns; ++column) sum[column] += factor * b_row[column];
        }
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        finish_row<T>(view, args, first_row + row, first_column,
                      std::span(sums).subspan(static_cast<std::size_t>(row * panel_columns),
                                              static_cast<std::size_t>(columns)));
      }
    }
  }
}

}  // namespace

void matmul(const HostView& view, const MatmulArgs& args) {
  with_compute_type(args.c.dtype, [&](auto type) { multiply<typename decltype(type)::type>(view, args); });
}

}  // namespace megalith::reference
