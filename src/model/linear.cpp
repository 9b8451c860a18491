#include "model/linear.h"

namespace megalith {

Linear make_linear(const ParameterStore& store, const std::string& name, bool bias) {
  Linear linear;
  const int weight = store.row(name + ".weight");
  linear.weight = store.compute(weight);
  linear.weight_gradient = store.gradient_sink(weight);
  if (bias) {
    const int row = store.row(name + ".bias");
    linear.bias = store.compute(row);
    linear.bias_gradient = store.gradient_sink(row);
  }
  return linear;
}

void linear_forward(Device& device, const Linear& linear, const Tensor& y, const Tensor& x, bool add_bias) {
  MatmulArgs args;
  args.a.data = x;
  args.b.data = linear.weight;
  args.b.transposed = true;
  args.c = y;
  if (add_bias) args.bias = linear.bias;
  device.matmul(QueueKind::compute, args);
}

void linear_activation_forward(Device& device, const Linear& linear, Activation activation, const Tensor& y,
                               const Tensor& pre, const Tensor& x) {
  MatmulArgs args;
  args.a.data = x;
  args.b.data = linear.weight;
  args.b.transposed = true;
  args.bias = linear.bias;
  if (pre) {
    // Kept apart: the activation must come from the stored (rounded) values, as it does when it is
    // recomputed.
    args.c = pre;
    device.matmul(QueueKind::compute, args);
    device.activation_forward(QueueKind::compute, activation, y, pre);
    return;
  }
  args.c = y;
  args.activation = activation;
  device.matmul(QueueKind::compute, args);
}

void linear_backward_input(Device& device, const Linear& linear, const Tensor& x_grad, const Tensor& y_grad) {
  MatmulArgs args;
  args.a.data = y_grad;
  args.b.data = linear.weight;
  args.c = x_grad;
  device.matmul(QueueKind::compute, args);
}

void linear_backward_weight(Device& device, const Linear& linear, const Tensor& y_grad, const Tensor& x) {
  MatmulArgs args;
  args.a.data = y_grad;
  args.a.transposed = true;
  args.b.data = x;
  args.c = linear.weight_gradient.tensor;
  args.accumulate = linear.weight_gradient.adds();
  device.matmul(QueueKind::compute, args);
  if (linear.bias) {
    device.add_column_sums(QueueKind::compute, linear.bias_gradient.to_add_to(device), y_grad);
  }
}

Norm make_norm(const ParameterStore& store, const std::string& name, double epsilon) {
  const int weight = store.row(name + ".weight");
  const int bias = store.row(name + ".bias");
  return {store.compute(weight), store.compute(bias), store.gradient_sink(weight), store.gradient_sink(bias),
          epsilon};
}

void norm_forward(Device& device, const Norm& norm, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                  const Tensor& x) {
  device.layer_norm_forward(QueueKind::compute, {x, norm.weight, norm.bias, y, mean, rstd, norm.epsilon});
}

void norm_backward(Device& device, const Norm& norm, const Tensor& x_grad, const Tensor& y_grad,
                   const Tensor& residual, const Tensor& mean, const Tensor& rstd, const Tensor& x) {
  LayerNormBackwardArgs args;
  args.y_grad = y_grad;
  args.x = x;
  args.weight = norm.weight;
  args.mean = mean;
  args.rstd = rstd;
  args.residual = residual;
  args.x_grad = x_grad;
  args.weight_grad = norm.weight_gradient.to_add_to(device);
  args.bias_grad = norm.bias_gradient.to_add_to(device);
  device.layer_norm_backward(QueueKind::compute, args);
}

}  // namespace megalith
