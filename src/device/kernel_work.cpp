#include "device/kernel_work.h"

#include <algorithm>
#include <initializer_list>

namespace megalith::kernel_work {
namespace {

constexpr double exponential = 10.0;  // FLOPs of an exponential or a hyperbolic tangent

double elements(const Tensor& tensor) {
  return tensor ? static_cast<double>(tensor.count()) : 0.0;
}

double bytes(std::initializer_list<Tensor> tensors) {
  double sum = 0.0;
  for (const Tensor& tensor : tensors) sum += elements(tensor) * static_cast<double>(size_of(tensor.dtype));
  return sum;
}

std::string joined(const Shape& shape) {
  std::string text;
  for (int dim = 0; dim < shape.rank(); ++dim) text += format("{}{}", dim == 0 ? "" : "x", shape[dim]);
  return text;
}

std::string text_of(const Tensor& tensor) {
  return format("{} {}", name_of(tensor.dtype), joined(tensor.shape));
}

/// So much arithmetic for each element of `main`.
KernelWork streamed(const Tensor& main, double flops_per_element, std::initializer_list<Tensor> read,
                    std::initializer_list<Tensor> written) {
  return {text_of(main), flops_per_element * elements(main), bytes(read), bytes(written)};
}

/// Pairs of a query and a key it sees, over all sequences and heads.
double visible_pairs(const AttentionArgs& args) {
  const std::int64_t queries = args.query.shape[1];
  const std::int64_t keys =
      args.block_table ? args.block_table.shape[1] * args.key.shape[1] : args.key.shape[1];
  double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  if (args.causal) {
    // With key_lengths the queries stand at the end of the keys.
    const std::int64_t first = args.key_lengths ? keys - queries : args.query_offset - args.key_offset;
    pairs = 0.0;
    for (std::int64_t i = 0; i < queries; ++i) {
      pairs += static_cast<double>(std::clamp<std::int64_t>(first + i + 1, 0, keys));
    }
  }
  return pairs * static_cast<double>(args.query.shape[0] * args.query.shape[2]);
}

std::string attention_shape(const AttentionArgs& args) {
  return format("{}{}{}{}", text_of(args.query), args.key_lengths ? " cached" : "",
                args.causal ? "" : " not causal", args.dropout.probability > 0 ? " dropout" : "");
}

}  // namespace

KernelWork copy_to_device(const Tensor& to) {
  return streamed(to, 0.0, {to}, {to});
}

KernelWork copy_to_host(const Tensor& from) {
  return streamed(from, 0.0, {from}, {from});
}

KernelWork fill(const Tensor& to) {
  return streamed(to, 0.0, {}, {to});
}

KernelWork copy(const Tensor& to, const Tensor& from) {
  KernelWork work = streamed(to, 0.0, {from}, {to});
  if (to.dtype != from.dtype) work.shape += format(" from {}", name_of(from.dtype));
  return work;
}

KernelWork add(const Tensor& to, const Tensor& a, const Tensor& b) {
  return streamed(to, 3.0, {a, b}, {to});
}

KernelWork initialize_normal(const InitializeNormalArgs& args) {
  // Philox gives four numbers for ten rounds of about eight operations, Box and Muller two for four
  // functions.
  return streamed(args.to, 20.0 + 2.0 * exponential, {}, {args.to});
}

KernelWork matmul(const MatmulArgs& args) {
  const std::int64_t rows = args.c.shape[0];
  const std::int64_t columns = args.c.shape[1];
  const std::int64_t inner = args.a.data.shape[args.a.transposed ? 0 : 1];
  KernelWork work = streamed(args.c, 2.0 * static_cast<double>(inner),
                             {args.a.data, args.b.data, args.bias, args.accumulate ? args.c : Tensor()},
                             {args.c, args.pre_activation});
  work.shape =
      format("{} {}x{}x{}{}{}{}{}{}", name_of(args.a.data.dtype), rows, columns, inner,
             args.a.transposed ? " a'" : "", args.b.transposed ? " b'" : "", args.accumulate ? " +=" : "",
             args.bias ? " bias" : "", args.activation == Activation::none ? "" : " gelu");
  return work;
}

KernelWork add_column_sums(const Tensor& sums, const Tensor& x) {
  return streamed(x, 1.0, {x, sums}, {sums});
}

KernelWork activation_forward(const Tensor& y, const Tensor& x) {
  return streamed(x, 8.0 + exponential, {x}, {y});
}

KernelWork activation_backward(const Tensor& x_grad, const Tensor& y_grad, const Tensor& x) {
  return streamed(x, 16.0 + exponential, {x, y_grad}, {x_grad});
}

KernelWork attention_forward(const AttentionArgs& args) {
  const double pairs = visible_pairs(args);
  const auto head = static_cast<double>(args.query.shape[3]);
  return {attention_shape(args), pairs * (4.0 * head + exponential),
          bytes({args.query, args.key, args.value}), bytes({args.out, args.log_sum_exp})};
}

KernelWork attention_backward(const AttentionBackwardArgs& args) {
  const AttentionArgs& forward = args.forward;
  const double pairs = visible_pairs(forward);
  const auto head = static_cast<double>(forward.query.shape[3]);
  return {attention_shape(forward), pairs * (10.0 * head + exponential),
          bytes({forward.query, forward.key, forward.value, forward.out, forward.log_sum_exp, args.out_grad}),
          bytes({args.query_grad, args.key_grad, args.value_grad})};
}

KernelWork layer_norm_forward(const LayerNormArgs& args) {
  return streamed(args.x, 8.0, {args.x, args.weight, args.bias}, {args.y, args.mean, args.rstd});
}

KernelWork layer_norm_backward(const LayerNormBackwardArgs& args) {
  return streamed(args.x, 16.0, {args.x, args.y_grad, args.residual, args.mean, args.rstd}, {args.x_grad});
}

KernelWork dropout_add_forward(const DropoutAddArgs& args) {
  const bool drops = args.dropout.probability > 0.0;
  KernelWork work = streamed(args.x, drops ? 22.0 : 2.0, {args.x, args.bias, args.residual}, {args.y});
  if (drops) work.shape += " dropout";
  return work;
}

KernelWork dropout_backward(const Tensor& x_grad, const Tensor& y_grad) {
  return streamed(y_grad, 20.0, {y_grad}, {x_grad});
}

KernelWork embedding_forward(const EmbeddingArgs& args) {
  // A row of the table for every token.
  const double table = elements(args.rows) * static_cast<double>(size_of(args.table.dtype));
  KernelWork work =
      streamed(args.rows, 0.0, {args.tokens, args.accumulate ? args.rows : Tensor()}, {args.rows});
  work.bytes_read += table;
  return work;
}

KernelWork embedding_backward(const EmbeddingBackwardArgs& args) {
  const double table = elements(args.rows_grad) * static_cast<double>(size_of(args.table_grad.dtype));
  KernelWork work = streamed(args.rows_grad, 1.0, {args.tokens, args.rows_grad}, {});
  work.bytes_read += table;
  work.bytes_written += table;
  return work;
}

KernelWork cross_entropy_forward(const CrossEntropyArgs& args) {
  return streamed(args.logits, 2.0 + exponential, {args.logits, args.targets},
                  {args.row_max, args.row_sum, args.target_logit});
}

KernelWork cross_entropy_loss(const CrossEntropyLossArgs& args) {
  return streamed(args.losses, 2.0 + exponential, {args.row_max, args.row_sum, args.target_logit},
                  {args.losses});
}

KernelWork cross_entropy_backward(const CrossEntropyBackwardArgs& args) {
  return streamed(args.logits, 3.0 + exponential,
                  {args.logits, args.targets, args.row_max, args.row_sum, args.weights}, {args.logits});
}

KernelWork add_weighted_sum(const Tensor& x, const Tensor& weights) {
  return streamed(x, 2.0, {x, weights}, {});
}

KernelWork block_norms(const Tensor& partials, const Tensor& x) {
  return streamed(x, 2.0, {x}, {partials});
}

KernelWork clip_factor(const ClipFactorArgs& args) {
  return streamed(args.partials, 1.0, {args.partials}, {args.norm, args.gradient_scale});
}

KernelWork adamw(const AdamWArgs& args) {
  return streamed(args.weights, 16.0, {args.weights, args.gradient, args.exp_avg, args.exp_avg_sq},
                  {args.weights, args.exp_avg, args.exp_avg_sq, args.compute_copy});
}

KernelWork sgd(const SgdArgs& args) {
  return streamed(args.weights, 6.0, {args.weights, args.gradient, args.momentum_buffer},
                  {args.weights, args.momentum_buffer, args.compute_copy});
}

}  // namespace megalith::kernel_work
