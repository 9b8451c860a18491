// The MLP half of a pre-norm transformer layer: y = x + dropout(fc2(gelu(fc1(norm(x)))) + bias).
#pragma once

#include "model/layer_buffers.h"
#include "model/linear.h"
#include "model/micro_batch.h"

namespace megalith {

class Mlp {
 public:
  Mlp(const GptConfig& config, const ParameterStore& store, std::int64_t layer);

  /// x and y are [R, H]. Fills norm_2, mean_2, rstd_2, preactivation (in training), activated of `kept`. An
  /// absent y skips the second half: what a recomputation needs whose result is known already.
  void forward(Device& device, const MicroBatch& batch, Pass pass, const LayerActivations& kept,
               const Tensor& x, const Tensor& y) const;

  /// From y_grad to gradients.middle (the gradient of x); leaves mlp_output and preactivation for
  /// backward_weight.
  void backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept, const Tensor& x,
                      const Tensor& y_grad, const LayerGradients& gradients) const;

  /// Adds the weight and bias gradients of linear_fc2 and linear_fc1.
  void backward_weight(Device& device, const LayerActivations& kept, const Tensor& x, const Tensor& y_grad,
                       const LayerGradients& gradients) const;

  /// As forward without dropout; y may be x's memory. `kept` is scratch of as many rows or more; its middle
  /// must not be x.
  void forward_inference(Device& device, const LayerActivations& kept, const Tensor& x,
                         const Tensor& y) const;

 private:
  GptConfig config_;
  Norm norm_;
  Linear fc1_;
  Linear fc2_;
  PhiloxKey output_key_;
};

}  // namespace megalith
