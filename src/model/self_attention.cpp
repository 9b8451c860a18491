#include "model/self_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/gpt_parameters.h"
#include "model/hidden_dropout.h"

namespace megalith {
SelfAttention::SelfAttention(const GptConfig& config, const ParameterStore& store, std::int64_t layer)
    : config_(config),
      norm_(make_norm(store, layer_parameter_name(layer, "input_layernorm"), config.norm_epsilon)),
      qkv_(make_linear(store, layer_parameter_name(layer, "self_attention.linear_qkv"))),
      proj_(make_linear(store, layer_parameter_name(layer, "self_attention.linear_proj"))),
      attention_key_(
          philox_key(config.seed, "dropout:" + layer_parameter_name(layer, "self_attention.core_attention"))),
      output_key_(
          philox_key(config.seed, "dropout:" + layer_parameter_name(layer, "self_attention.linear_proj"))),
      scale_(1.0 / std::sqrt(static_cast<double>(config.head_size))) {}

SelfAttention::Views SelfAttention::split(const Tensor& qkv, std::int64_t sequences,
                                          std::int64_t length) const {
  const std::int64_t size = config_.head_size;
  const Tensor all = prefix_view(qkv, {sequences, length, config_.heads, 3 * size});
  return {all.sliced(3, 0, size), all.sliced(3, size, 2 * size), all.sliced(3, 2 * size, 3 * size)};
}

AttentionArgs SelfAttention::attention(const MicroBatch& batch, Pass pass,
                                       const LayerActivations& kept) const {
  const std::int64_t sequences = batch.samples.shape[0];
  const Views views = split(kept.qkv, sequences, config_.sequence);
  AttentionArgs args;
  args.query = views.query;
  args.key = views.key;
  args.value = views.value;
  args.out = kept.attended.reshaped({sequences, config_.sequence, config_.heads, config_.head_size});
  args.log_sum_exp = kept.log_sum_exp;
  args.scale = scale_;
  args.dropout.probability = pass == Pass::training ? config_.attention_dropout : 0.0;
  args.dropout.key = attention_key_;
  args.dropout.samples = batch.samples;
  return args;
}

AttentionArgs SelfAttention::of_sequence(const AttentionArgs& all, const Tensor& cu_seqlens,
                                         std::int64_t sequence) {
  AttentionArgs args = all;
  for (Tensor* tensor :
       {&args.query, &args.key, &args.value, &args.out, &args.log_sum_exp, &args.dropout.samples}) {
    *tensor = tensor->sliced(0, sequence, sequence + 1);
  }
  args.cu_seqlens = cu_seqlens.sliced(0, sequence, sequence + 1).reshaped({cu_seqlens.shape[1]});
  return args;
}

void SelfAttention::forward(Device& device, const MicroBatch& batch, Pass pass, const LayerActivations& kept,
                            const Tensor& x, const Tensor& y) const {
  const Region region(device, "attention");
  const std::int64_t sequences = batch.samples.shape[0];
  norm_forward(device, norm_, kept.norm_1, kept.mean_1, kept.rstd_1, x);
  linear_forward(device, qkv_, kept.qkv, kept.norm_1);
  const AttentionArgs all = attention(batch, pass, kept);
  if (batch.cu_seqlens) {
    for (std::int64_t b = 0; b < sequences; ++b) {
      device.attention_forward(QueueKind::compute, of_sequence(all, batch.cu_seqlens, b));
    }
  } else {
    device.attention_forward(QueueKind::compute, all);
  }
  linear_forward(device, proj_, y, kept.attended, /*add_bias=*/false);
  device.dropout_add_forward(QueueKind::compute,
                             {batched(y, sequences), proj_.bias, batched(x, sequences), batched(y, sequences),
                              hidden_dropout(config_, output_key_, batch, pass)});
}

void SelfAttention::backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept,
                                   const Tensor& x, const Tensor& y_grad, const LayerGradients& gradients,
                                   const LayerScratch& scratch) const {
  const Region region(device, "attention input");
  const std::int64_t sequences = batch.samples.shape[0];
  Tensor proj_grad = y_grad;
  if (gradients.proj_output) {
    proj_grad = gradients.proj_output;
    device.dropout_backward(QueueKind::compute, batched(proj_grad, sequences), batched(y_grad, sequences),
                            hidden_dropout(config_, output_key_, batch, Pass::training));
  }
  linear_backward_input(device, proj_, scratch.attended, proj_grad);

  AttentionBackwardArgs args;
  args.forward = attention(batch, Pass::training, kept);
  args.out_grad = scratch.attended.reshaped(args.forward.out.shape);
  const Views grads = split(gradients.qkv, sequences, config_.sequence);
  args.query_grad = grads.query;
  args.key_grad = grads.key;
  args.value_grad = grads.value;
  args.row_dots = scratch.row_dots;
  if (batch.cu_seqlens) {
    for (std::int64_t b = 0; b < sequences; ++b) {
      AttentionBackwardArgs one = args;
      one.forward = of_sequence(args.forward, batch.cu_seqlens, b);
      for (Tensor* tensor : {&one.out_grad, &one.query_grad, &one.key_grad, &one.value_grad, &one.row_dots}) {
        *tensor = tensor->sliced(0, b, b + 1);
      }
      device.attention_backward(QueueKind::compute, one);
    }
  } else {
    device.attention_backward(QueueKind::compute, args);
  }
  linear_backward_input(device, qkv_, gradients.input, gradients.qkv);
  norm_backward(device, norm_, gradients.input, gradients.input, y_grad, kept.mean_1, kept.rstd_1, x);
}

void SelfAttention::backward_weight(Device& device, const LayerActivations& kept, const Tensor& x,
                                    const Tensor& y_grad, const LayerGradients& gradients) const {
  const Region region(device, "attention weight");
  linear_backward_weight(device, proj_, gradients.proj_output ? gradients.proj_output : y_grad,
                         kept.attended);
  if (kept.recompute_cheap) norm_forward(device, norm_, kept.norm_1, kept.mean_1, kept.rstd_1, x);
  linear_backward_weight(device, qkv_, gradients.qkv, kept.norm_1);
}

void SelfAttention::forward_cached(Device& device, const CachedStep& step, const LayerCache& cache,
                                   const LayerActivations& kept, const Tensor& x, const Tensor& y) const {
  norm_forward(device, norm_, kept.norm_1, kept.mean_1, kept.rstd_1, x);
  linear_forward(device, qkv_, kept.qkv, kept.norm_1);
  const Views views = split(kept.qkv, step.sequences, step.steps);
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < step.sequences; ++b) {
    const std::int64_t count = step.counts[static_cast<std::size_t>(b)];
    const std::int64_t first = step.before[static_cast<std::size_t>(b)];
    longest = std::max(longest, first + count);
    if (count == 0) continue;
    for (const auto& [to, from] :
         {std::pair(&cache.keys, &views.key), std::pair(&cache.values, &views.value)}) {
      device.copy(QueueKind::compute, to->sliced(0, b, b + 1).sliced(1, first, first + count),
                  from->sliced(0, b, b + 1).sliced(1, step.steps - count, step.steps));
    }
  }
  // Where y has a row for each sequence alone, only the last query goes on.
  const std::int64_t queries = y.shape[0] / step.sequences;
  const std::int64_t rows = y.shape[0];
  Tensor residual = x;
  if (queries < step.steps) {
    const Tensor all = x.reshaped({step.sequences, step.steps, config_.hidden});
    residual = y;
    device.copy(QueueKind::compute, y.reshaped({step.sequences, queries, config_.hidden}),
                all.sliced(1, step.steps - queries, step.steps));
  }
  AttentionArgs args;
  args.query = views.query.sliced(1, step.steps - queries, step.steps);
  args.key = cache.keys.sliced(0, 0, step.sequences).sliced(1, 0, longest);
  args.value = cache.values.sliced(0, 0, step.sequences).sliced(1, 0, longest);
  const Tensor attended = kept.attended.sliced(0, 0, rows);
  args.out = attended.reshaped({step.sequences, queries, config_.heads, config_.head_size});
  args.log_sum_exp = prefix_view(kept.log_sum_exp, {step.sequences, config_.heads, queries});
  args.scale = scale_;
  args.key_lengths = step.key_lengths;
  device.attention_forward(QueueKind::compute, args);
  const Tensor projected = kept.middle.sliced(0, 0, rows);
  linear_forward(device, proj_, projected, attended, /*add_bias=*/false);
  device.dropout_add_forward(
      QueueKind::compute, {batched(projected, step.sequences), proj_.bias, batched(residual, step.sequences),
                           batched(y, step.sequences), DropoutArgs{}});
}

}  // namespace megalith
