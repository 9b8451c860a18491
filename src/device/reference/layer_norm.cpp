// Layer normalisation (Ba, Kiros and Hinton 2016) and its gradients.
#include <cmath>
#include <vector>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

template <typename T>
void forward(const HostView& view, const LayerNormArgs& args) {
  const std::int64_t hidden = args.x.shape[1];
  const T* weight = view.pointer<T>(args.weight);
  const T* bias = view.pointer<T>(args.bias);
  for (std::int64_t row = 0; row < args.x.shape[0]; ++row) {
    const T* x = view.pointer<T>(args.x) + row * hidden;
    T* y = view.pointer<T>(args.y) + row * hidden;
    double mean = 0.0;
    for (std::int64_t i = 0; i < hidden; ++i) mean += to_double(x[i]);
    mean /= static_cast<double>(hidden);
    double variance = 0.0;
    for (std::int64_t i = 0; i < hidden; ++i) {
      const double distance = to_double(x[i]) - mean;
      variance += distance * distance;
    }
    variance /= static_cast<double>(hidden);
    const double rstd = 1.0 / std::sqrt(variance + args.epsilon);
    for (std::int64_t i = 0; i < hidden; ++i) {
      y[i] = from_double<T>((to_double(x[i]) - mean) * rstd * to_double(weight[i]) + to_double(bias[i]));
    }
    view.pointer<T>(args.mean)[row] = from_double<T>(mean);
    view.pointer<T>(args.rstd)[row] = from_double<T>(rstd);
  }
}

// With n = (x - mean) * rstd and g = y_grad * weight:
//   x_grad = rstd * (g - mean(g) - n * mean(g * n)), weight_grad += y_grad * n, bias_grad += y_grad.
template <typename T>
void backward(const HostView& view, const LayerNormBackwardArgs& args) {
  const std::int64_t hidden = args.x.shape[1];
  const T* weight = view.pointer<T>(args.weight);
  std::vector<double> weight_sums(static_cast<std::size_t>(hidden), 0.0);
  std::vector<double> bias_sums(static_cast<std::size_t>(hidden), 0.0);
  std::vector<double> normal(static_cast<std::size_t>(hidden));
  std::vector<double> gradient(static_cast<std::size_t>(hidden));
  for (std::int64_t row = 0; row < args.x.shape[0]; ++row) {
    const T* x = view.pointer<T>(args.x) + row * hidden;
    const T* y_grad = view.pointer<T>(args.y_grad) + row * hidden;
    const double mean = to_double(view.pointer<T>(args.mean)[row]);
    const double rstd = to_double(view.pointer<T>(args.rstd)[row]);
    double gradient_mean = 0.0;
    double product_mean = 0.0;
    for (std::int64_t i = 0; i < hidden; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double y_gradient = to_double(y_grad[i]);
      normal[at] = (to_double(x[i]) - mean) * rstd;
      gradient[at] = y_gradient * to_double(weight[i]);
      gradient_mean += gradient[at];
      product_mean += gradient[at] * normal[at];
      weight_sums[at] += y_gradient * normal[at];
      bias_sums[at] += y_gradient;
    }
    if (!args.x_grad) continue;
    gradient_mean /= static_cast<double>(hidden);
    product_mean /= static_cast<double>(hidden);
    const T* residual = args.residual ? view.pointer<T>(args.residual) + row * hidden : nullptr;
    T* x_grad = view.pointer<T>(args.x_grad) + row * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      const auto at = static_cast<std::size_t>(i);
      double value = rstd * (gradient[at] - gradient_mean - normal[at] * product_mean);
      if (residual != nullptr) value += to_double(residual[i]);
      x_grad[i] = from_double<T>(value);
    }
  }
  const auto add_to = [&](const Tensor& total, const std::vector<double>& sums) {
    if (!total) return;
    T* out = view.pointer<T>(total);
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = from_double<T>(to_double(out[i]) + sums[i]);
  };
  add_to(args.weight_grad, weight_sums);
  add_to(args.bias_grad, bias_sums);
}

}  // namespace

void layer_norm_forward(const HostView& view, const LayerNormArgs& args) {
  with_compute_type(args.x.dtype, [&](auto type) { forward<typename decltype(type)::type>(view, args); });
}

void layer_norm_backward(const HostView& view, const LayerNormBackwardArgs& args) {
  with_compute_type(args.x.dtype, [&](auto type) { backward<typename decltype(type)::type>(view, args); });
}

}  // namespace megalith::reference
