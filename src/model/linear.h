// A linear layer y = x W^T + b, its parts apart so that schedules can move the weight gradient.
// Weights are [outputs, inputs] as in Megatron-LM.
#pragma once

#include "device/device.h"
#include "model/gradient_sink.h"
#include "model/parameter_store.h"

namespace megalith {

struct Linear {
  Tensor weight;                 ///< compute type [outputs, inputs]
  Tensor bias;                   ///< compute type [outputs]; absent: none
  GradientSink weight_gradient;  ///< like weight
  GradientSink bias_gradient;
};

/// The linear layer whose parameters are NAME.weight and, with `bias`, NAME.bias.
Linear make_linear(const ParameterStore& store, const std::string& name, bool bias = true);

/// y [R, outputs] = x [R, inputs] W^T (+ b with `add_bias`).
void linear_forward(Device& device, const Linear& linear, const Tensor& y, const Tensor& x,
                    bool add_bias = true);

/// pre = x W^T + b, y = activation(pre). Without `pre` only y is stored.
void linear_activation_forward(Device& device, const Linear& linear, Activation activation, const Tensor& y,
                               const Tensor& pre, const Tensor& x);

/// x_grad [R, inputs] = y_grad [R, outputs] W.
void linear_backward_input(Device& device, const Linear& linear, const Tensor& x_grad, const Tensor& y_grad);

/// Adds y_grad^T x to weight_gradient and the column sums of y_grad to bias_gradient.
void linear_backward_weight(Device& device, const Linear& linear, const Tensor& y_grad, const Tensor& x);

/// A layer norm's weights, NAME.weight and NAME.bias.
struct Norm {
  Tensor weight;
  Tensor bias;
  GradientSink weight_gradient;
  GradientSink bias_gradient;
  double epsilon = 1e-5;
};

Norm make_norm(const ParameterStore& store, const std::string& name, double epsilon);

/// y = norm(x); mean and rstd (sum type [R]) are kept for the backward pass.
void norm_forward(Device& device, const Norm& norm, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                  const Tensor& x);

/// x_grad = backward of the norm + residual; the norm's parameter gradients are added in the same pass over
/// the data. x_grad may be y_grad's or residual's memory.
void norm_backward(Device& device, const Norm& norm, const Tensor& x_grad, const Tensor& y_grad,
                   const Tensor& residual, const Tensor& mean, const Tensor& rstd, const Tensor& x);

}  // namespace megalith
