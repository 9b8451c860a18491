// dropout_add_forward and dropout_backward.
#include <vector>

#include "device/reference/dropout_mask.h"
#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void dropout_add_forward(const HostView& view, const DropoutAddArgs& args) {
  with_compute_type(args.x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* x = view.pointer<T>(args.x);
    const T* bias = view.pointer<T>(args.bias);
    const T* residual = view.pointer<T>(args.residual);
    T* y = view.pointer<T>(args.y);
    const std::int64_t rows = args.x.shape[1];
    const std::int64_t hidden = args.x.shape[2];
    const DropoutMask mask(view, args.dropout);
    std::vector<double> factors(static_cast<std::size_t>(hidden));
    for (std::int64_t sequence = 0; sequence < args.x.shape[0]; ++sequence) {
      for (std::int64_t row = 0; row < rows; ++row) {
        mask.row_factors(sequence, 0, row, 0, factors);
        const std::int64_t start = (sequence * rows + row) * hidden;
        for (std::int64_t i = 0; i < hidden; ++i) {
          double value = to_double(x[start + i]);
          if (bias != nullptr) value += to_double(bias[i]);
          value *= factors[static_cast<std::size_t>(i)];
          if (residual != nullptr) value += to_double(residual[start + i]);
          y[start + i] = from_double<T>(value);
        }
      }
    }
  });
}

void dropout_backward(const HostView& view, const Tensor& x_grad, const Tensor& y_grad,
                      const DropoutArgs& dropout) {
  with_compute_type(y_grad.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* out_grad = view.pointer<T>(y_grad);
    T* in_grad = view.pointer<T>(x_grad);
    const std::int64_t rows = y_grad.shape[1];
    const std::int64_t hidden = y_grad.shape[2];
    const DropoutMask mask(view, dropout);
    std::vector<double> factors(static_cast<std::size_t>(hidden));
    for (std::int64_t sequence = 0; sequence < y_grad.shape[0]; ++sequence) {
      for (std::int64_t row = 0; row < rows; ++row) {
        mask.row_factors(sequence, 0, row, 0, factors);
        const std::int64_t start = (sequence * rows + row) * hidden;
        for (std::int64_t i = 0; i < hidden; ++i) {
          in_grad[start + i] =
              from_double<T>(to_double(out_grad[start + i]) * factors[static_cast<std::size_t>(i)]);
        }
      }
    }
  });
}

}  // namespace megalith::reference
