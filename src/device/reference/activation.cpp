#include "device/reference/activation_functions.h"
#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {

void activation_forward(const HostView& view, Activation kind, const Tensor& y, const Tensor& x) {
  with_compute_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* in = view.pointer<T>(x);
    T* out = view.pointer<T>(y);
    for (std::int64_t i = 0; i < x.count(); ++i) out[i] = from_double<T>(activate(kind, to_double(in[i])));
  });
}

void activation_backward(const HostView& view, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                         const Tensor& x) {
  with_compute_type(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* in = view.pointer<T>(x);
    const T* out_grad = view.pointer<T>(y_grad);
    T* in_grad = view.pointer<T>(x_grad);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      in_grad[i] = from_double<T>(to_double(out_grad[i]) * activation_slope(kind, to_double(in[i])));
    }
  });
}

}  // namespace megalith::reference
