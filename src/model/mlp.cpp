#include "model/mlp.h"

#include "model/gpt_parameters.h"
#include "model/hidden_dropout.h"

namespace megalith {
Mlp::Mlp(const GptConfig& config, const ParameterStore& store, std::int64_t layer)
    : config_(config),
      norm_(make_norm(store, layer_parameter_name(layer, "pre_mlp_layernorm"), config.norm_epsilon)),
      fc1_(make_linear(store, layer_parameter_name(layer, "mlp.linear_fc1"))),
      fc2_(make_linear(store, layer_parameter_name(layer, "mlp.linear_fc2"))),
      output_key_(philox_key(config.seed, "dropout:" + layer_parameter_name(layer, "mlp.linear_fc2"))) {}

void Mlp::forward(Device& device, const MicroBatch& batch, Pass pass, const LayerActivations& kept,
                  const Tensor& x, const Tensor& y) const {
  const Region region(device, "MLP");
  const std::int64_t sequences = batch.samples.shape[0];
  norm_forward(device, norm_, kept.norm_2, kept.mean_2, kept.rstd_2, x);
  linear_activation_forward(device, fc1_, config_.activation, kept.activated,
                            pass == Pass::training ? kept.preactivation : Tensor(), kept.norm_2);
  if (!y) return;
  linear_forward(device, fc2_, y, kept.activated, /*add_bias=*/false);
  device.dropout_add_forward(QueueKind::compute,
                             {batched(y, sequences), fc2_.bias, batched(x, sequences), batched(y, sequences),
                              hidden_dropout(config_, output_key_, batch, pass)});
}

void Mlp::backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept,
                         const Tensor& x, const Tensor& y_grad, const LayerGradients& gradients) const {
  const Region region(device, "MLP input");
  const std::int64_t sequences = batch.samples.shape[0];
  Tensor output_grad = y_grad;
  if (gradients.mlp_output) {
    output_grad = gradients.mlp_output;
    device.dropout_backward(QueueKind::compute, batched(output_grad, sequences), batched(y_grad, sequences),
                            hidden_dropout(config_, output_key_, batch, Pass::training));
  }
  linear_backward_input(device, fc2_, gradients.preactivation, output_grad);
  device.activation_backward(QueueKind::compute, config_.activation, gradients.preactivation,
                             gradients.preactivation, kept.preactivation);
  linear_backward_input(device, fc1_, gradients.middle, gradients.preactivation);
  norm_backward(device, norm_, gradients.middle, gradients.middle, y_grad, kept.mean_2, kept.rstd_2, x);
}

void Mlp::backward_weight(Device& device, const LayerActivations& kept, const Tensor& x, const Tensor& y_grad,
                          const LayerGradients& gradients) const {
  const Region region(device, "MLP weight");
  if (kept.recompute_cheap) {
    device.activation_forward(QueueKind::compute, config_.activation, kept.activated, kept.preactivation);
  }
  linear_backward_weight(device, fc2_, gradients.mlp_output ? gradients.mlp_output : y_grad, kept.activated);
  if (kept.recompute_cheap) norm_forward(device, norm_, kept.norm_2, kept.mean_2, kept.rstd_2, x);
  linear_backward_weight(device, fc1_, gradients.preactivation, kept.norm_2);
}

void Mlp::forward_inference(Device& device, const LayerActivations& kept, const Tensor& x,
                            const Tensor& y) const {
  const auto rows = [&](const Tensor& all) { return all.sliced(0, 0, x.shape[0]); };
  const Tensor norm = rows(kept.norm_2);
  const Tensor activated = rows(kept.activated);
  const Tensor output = rows(kept.middle);
  norm_forward(device, norm_, norm, rows(kept.mean_2), rows(kept.rstd_2), x);
  linear_activation_forward(device, fc1_, config_.activation, activated, Tensor(), norm);
  linear_forward(device, fc2_, output, activated, /*add_bias=*/false);
  device.dropout_add_forward(QueueKind::compute,
                             {batched(output, 1), fc2_.bias, batched(x, 1), batched(y, 1), DropoutArgs{}});
}

}  // namespace megalith
