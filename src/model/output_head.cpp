#include "model/output_head.h"

namespace megalith {

HeadActivations allocate_head_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                          std::int64_t sequences) {
  const std::int64_t rows = sequences * config.sequence;
  const DType sum = config.sum();
  HeadActivations kept;
  kept.norm = arena.allocate(name + ".norm", config.compute, {rows, config.hidden});
  kept.mean = arena.allocate(name + ".mean", sum, {rows});
  kept.rstd = arena.allocate(name + ".rstd", sum, {rows});
  kept.logits = arena.allocate(name + ".logits", config.compute, {rows, config.padded_vocabulary});
  kept.row_max = arena.allocate(name + ".row_max", sum, {rows});
  kept.row_sum = arena.allocate(name + ".row_sum", sum, {rows});
  kept.target_logit = arena.allocate(name + ".target_logit", sum, {rows});
  kept.losses = arena.allocate(name + ".losses", sum, {rows});
  return kept;
}

OutputHead::OutputHead(const GptConfig& config, const ParameterStore& store)
    : config_(config),
      norm_(make_norm(store, "decoder.final_layernorm", config.norm_epsilon)),
      output_(make_linear(store, "output_layer", /*bias=*/false)) {}

void OutputHead::forward_logits(Device& device, const HeadActivations& kept, const Tensor& x) const {
  const Region region(device, "head");
  norm_forward(device, norm_, kept.norm, kept.mean, kept.rstd, x);
  linear_forward(device, output_, kept.logits, kept.norm);
}

void OutputHead::forward_loss(Device& device, const MicroBatch& batch, const HeadActivations& kept) const {
  const Region region(device, "loss");
  CrossEntropyArgs args;
  args.logits = kept.logits;
  args.targets = batch.targets;
  args.columns = config_.vocabulary;
  args.row_max = kept.row_max;
  args.row_sum = kept.row_sum;
  args.target_logit = kept.target_logit;
  device.cross_entropy_forward(QueueKind::compute, args);
  device.cross_entropy_loss(QueueKind::compute, {kept.row_max, kept.row_sum, kept.target_logit, kept.losses});
  device.add_weighted_sum(QueueKind::compute, batch.loss_sum, kept.losses, batch.loss_mask);
}

void OutputHead::backward_input(Device& device, const MicroBatch& batch, const HeadActivations& kept,
                                const Tensor& x, const Tensor& x_grad) const {
  const Region region(device, "head input");
  CrossEntropyBackwardArgs args;
  args.logits = kept.logits;
  args.targets = batch.targets;
  args.columns = config_.vocabulary;
  args.row_max = kept.row_max;
  args.row_sum = kept.row_sum;
  args.weights = batch.loss_mask;
  args.scale = batch.gradient_scale;
  device.cross_entropy_backward(QueueKind::compute, args);
  linear_backward_input(device, output_, x_grad, kept.logits);
  norm_backward(device, norm_, x_grad, x_grad, Tensor(), kept.mean, kept.rstd, x);
}

void OutputHead::backward_weight(Device& device, const HeadActivations& kept) const {
  const Region region(device, "head weight");
  linear_backward_weight(device, output_, kept.logits, kept.norm);
}

}  // namespace megalith
