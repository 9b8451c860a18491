#include "model/output_head.h"

#include <algorithm>

namespace megalith {

HeadActivations allocate_head_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                          std::int64_t sequences) {
  const std::int64_t rows = sequences * config.sequence;
  const DType sum = config.sum();
  HeadActivations kept;
  kept.norm = arena.allocate(name + ".norm", config.compute, {rows, config.hidden});
  kept.mean = arena.allocate(name + ".mean", sum, {rows});
  kept.rstd = arena.allocate(name + ".rstd", sum, {rows});
  kept.losses = arena.allocate(name + ".losses", sum, {rows});
  return kept;
}

HeadScratch allocate_head_scratch(Arena& arena, const std::string& name, const GptConfig& config,
                                  std::int64_t rows) {
  const std::int64_t chunk = std::min(rows, head_chunk_rows(config.compute));
  const DType sum = config.sum();
  HeadScratch scratch;
  // Rows an odd number of cache lines apart: a column's elements, which the weight gradient reads together,
  // must not all fall into the same sets of a cache.
  constexpr std::int64_t line_bytes = 64;
  const auto line = line_bytes / static_cast<std::int64_t>(size_of(config.compute));
  const std::int64_t lines = (config.padded_vocabulary + line - 1) / line;
  scratch.logits = arena.allocate(name + ".logits", config.compute, {chunk, (lines | 1) * line})
                       .sliced(1, 0, config.padded_vocabulary);
  scratch.row_max = arena.allocate(name + ".row_max", sum, {chunk});
  scratch.row_sum = arena.allocate(name + ".row_sum", sum, {chunk});
  scratch.target_logit = arena.allocate(name + ".target_logit", sum, {chunk});
  return scratch;
}

OutputHead::OutputHead(const GptConfig& config, const ParameterStore& store)
    : config_(config),
      norm_(make_norm(store, "decoder.final_layernorm", config.norm_epsilon)),
      output_(make_linear(store, "output_layer", /*bias=*/false)) {}

void OutputHead::forward_logits(Device& device, const HeadActivations& kept, const Tensor& logits,
                                const Tensor& x) const {
  norm_forward(device, norm_, kept.norm, kept.mean, kept.rstd, x);
  linear_forward(device, output_, logits, kept.norm);
}

void OutputHead::forward_loss(Device& device, const MicroBatch& batch, Pass pass, const HeadActivations& kept,
                              const HeadScratch& scratch, const Tensor& x) const {
  const Region region(device, "head");
  norm_forward(device, norm_, kept.norm, kept.mean, kept.rstd, x);
  const std::int64_t rows = x.shape[0];
  const std::int64_t most = scratch.logits.shape[0];
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t count = std::min(most, rows - first);
    const HeadScratch chunk{scratch.logits.sliced(0, 0, count), scratch.row_max.sliced(0, 0, count),
                            scratch.row_sum.sliced(0, 0, count), scratch.target_logit.sliced(0, 0, count)};
    run_chunk(device, batch, pass, chunk, kept.norm.sliced(0, first, first + count),
              kept.losses.sliced(0, first, first + count), first);
  }
  device.add_weighted_sum(QueueKind::compute, batch.loss_sum, kept.losses, batch.loss_mask);
}

void OutputHead::run_chunk(Device& device, const MicroBatch& batch, Pass pass, const HeadScratch& chunk,
                           const Tensor& norm, const Tensor& losses, std::int64_t first) const {
  const std::int64_t end = first + norm.shape[0];
  const Tensor targets = batch.targets.sliced(0, first, end);
  linear_forward(device, output_, chunk.logits, norm);
  CrossEntropyArgs args;
  args.logits = chunk.logits;
  args.targets = targets;
  args.columns = config_.vocabulary;
  args.row_max = chunk.row_max;
  args.row_sum = chunk.row_sum;
  args.target_logit = chunk.target_logit;
  device.cross_entropy_forward(QueueKind::compute, args);
  device.cross_entropy_loss(QueueKind::compute, {chunk.row_max, chunk.row_sum, chunk.target_logit, losses});
  if (pass == Pass::evaluation) return;
  CrossEntropyBackwardArgs backward;
  backward.logits = chunk.logits;
  backward.targets = targets;
  backward.columns = config_.vocabulary;
  backward.row_max = chunk.row_max;
  backward.row_sum = chunk.row_sum;
  backward.weights = batch.loss_mask.sliced(0, first, end);
  backward.scale = batch.gradient_scale;
  device.cross_entropy_backward(QueueKind::compute, backward);
  linear_backward_weight(device, output_, chunk.logits, norm);
  linear_backward_input(device, output_, norm, chunk.logits);
}

void OutputHead::backward_input(Device& device, const HeadActivations& kept, const Tensor& x,
                                const Tensor& x_grad) const {
  const Region region(device, "head");
  norm_backward(device, norm_, x_grad, kept.norm, Tensor(), kept.mean, kept.rstd, x);
}

}  // namespace megalith
