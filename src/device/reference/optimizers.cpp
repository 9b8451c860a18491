// AdamW (Loshchilov and Hutter 2019) and SGD steps.
#include <cmath>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

/// The copy that the model computes with, where there is one.
void write_compute_copy(const HostView& view, const Tensor& compute_copy, const Tensor& weights) {
  if (compute_copy) copy(view, compute_copy, weights);
}

}  // namespace

void adamw(const HostView& view, const AdamWArgs& args) {
  const double gradient_scale = *view.pointer<double>(args.gradient_scale);
  if (gradient_scale < 0.0) return;
  const double rate = *view.pointer<double>(args.learning_rate) * args.lr_mult;
  const auto step = static_cast<double>(*view.pointer<std::int64_t>(args.step));
  const double correction1 = 1.0 - std::pow(args.beta1, step);
  const double correction2 = 1.0 - std::pow(args.beta2, step);
  with_compute_type(args.weights.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* weights = view.pointer<T>(args.weights);
    const T* gradients = view.pointer<T>(args.gradient);
    T* exp_avg = view.pointer<T>(args.exp_avg);
    T* exp_avg_sq = view.pointer<T>(args.exp_avg_sq);
    for (std::int64_t i = 0; i < args.weights.count(); ++i) {
      const double gradient = to_double(gradients[i]) * gradient_scale;
      const double m = args.beta1 * to_double(exp_avg[i]) + (1.0 - args.beta1) * gradient;
      const double v = args.beta2 * to_double(exp_avg_sq[i]) + (1.0 - args.beta2) * gradient * gradient;
      const double w = to_double(weights[i]);
      const double direction =
          m / correction1 / (std::sqrt(v / correction2) + args.epsilon) + args.weight_decay * w;
      exp_avg[i] = from_double<T>(m);
      exp_avg_sq[i] = from_double<T>(v);
      weights[i] = from_double<T>(w - rate * direction);
    }
  });
  write_compute_copy(view, args.compute_copy, args.weights);
}

void sgd(const HostView& view, const SgdArgs& args) {
  const double gradient_scale = *view.pointer<double>(args.gradient_scale);
  if (gradient_scale < 0.0) return;
  const double rate = *view.pointer<double>(args.learning_rate) * args.lr_mult;
  with_compute_type(args.weights.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* weights = view.pointer<T>(args.weights);
    const T* gradients = view.pointer<T>(args.gradient);
    T* buffer = view.pointer<T>(args.momentum_buffer);
    for (std::int64_t i = 0; i < args.weights.count(); ++i) {
      const double w = to_double(weights[i]);
      double direction = to_double(gradients[i]) * gradient_scale + args.weight_decay * w;
      if (buffer != nullptr) {
        direction += args.momentum * to_double(buffer[i]);
        buffer[i] = from_double<T>(direction);
      }
      weights[i] = from_double<T>(w - rate * direction);
    }
  });
  write_compute_copy(view, args.compute_copy, args.weights);
}

}  // namespace megalith::reference
