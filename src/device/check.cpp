#include "device/check.h"

#include "device/check_support.h"

namespace megalith {
namespace {

std::int64_t ceil_divide(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}

// Master weights and what an optimizer keeps beside them.
void check_optimizer_tensors(const KernelCheck& check, const Tensor& weights, const Tensor& gradient,
                             const Tensor& compute_copy) {
  check.rank("weights", weights, 1);
  check.require(weights.dtype == DType::float32 || weights.dtype == DType::float64, "weights",
                name_of(weights.dtype), "float32 or float64");
  check.contiguous("weights", weights, weights.shape);
  check.exactly("gradient", gradient, weights.dtype, weights.shape);
  check.apart("weights", weights, "gradient", gradient);
  if (compute_copy) {
    check.contiguous("compute_copy", compute_copy, weights.shape);
    check.compute_dtype("compute_copy", compute_copy);
    check.apart("compute_copy", compute_copy, "weights", weights);
    check.apart("compute_copy", compute_copy, "gradient", gradient);
  }
}

void check_columns(const KernelCheck& check, const Tensor& logits, std::int64_t columns) {
  check.require(columns >= 0 && columns <= logits.shape[1], "columns", format("{}", columns),
                format("0 to the {} columns of logits", logits.shape[1]));
}

}  // namespace

bool is_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::bfloat16 ||
         dtype == DType::float16;
}

void check_copy_to_device(const Tensor& to, const void* host) {
  const KernelCheck check("copy_to_device");
  check.contiguous("to", to, to.shape);
  check.require(host != nullptr || to.count() == 0, "host", "null", "host memory");
}

void check_copy_to_host(const void* host, const Tensor& from) {
  const KernelCheck check("copy_to_host");
  check.contiguous("from", from, from.shape);
  check.require(host != nullptr || from.count() == 0, "host", "null", "host memory");
}

void check_fill(const Tensor& to) {
  KernelCheck("fill").strided("to", to, to.shape);
}

void check_copy(const Tensor& to, const Tensor& from) {
  const KernelCheck check("copy");
  check.strided("from", from, from.shape);
  check.strided("to", to, from.shape);
  check.require(to.dtype == from.dtype || (is_float(to.dtype) && is_float(from.dtype)), "to",
                name_of(to.dtype), format("{} or, between float types, another", name_of(from.dtype)));
  check.apart("to", to, "from", from);
}

void check_add(const Tensor& to, const Tensor& a, const Tensor& b) {
  const KernelCheck check("add");
  check.contiguous("a", a, a.shape);
  check.contiguous("b", b, a.shape);
  check.contiguous("to", to, a.shape);
  check.compute_dtype("a", a);
  check.compute_dtype("b", b);
  check.compute_dtype("to", to);
  check.same_or_apart("to", to, "a", a);
  check.same_or_apart("to", to, "b", b);
}

void check_initialize_normal(const InitializeNormalArgs& args) {
  const KernelCheck check("initialize_normal");
  check.rank("to", args.to, 2);
  check.contiguous("to", args.to, args.to.shape);
  check.compute_dtype("to", args.to);
  check.require(args.first_element >= 0 && args.row_step >= 0, "first_element, row_step",
                format("{}, {}", args.first_element, args.row_step), "numbers of 0 or more");
}

void check_matmul(const MatmulArgs& args) {
  const KernelCheck check("matmul");
  check.rank("a", args.a.data, 2);
  check.rank("b", args.b.data, 2);
  check.strided("a", args.a.data, args.a.data.shape);
  check.strided("b", args.b.data, args.b.data.shape);
  check.compute_dtype("a", args.a.data);
  check.dtype("b", args.b.data, args.a.data.dtype);
  check.require(!args.a.scale && !args.b.scale && args.a.scale_layout == ScaleLayout::none &&
                    args.b.scale_layout == ScaleLayout::none,
                "scale", "given", "none (no device scales operands yet)");
  const Shape& a = args.a.data.shape;
  const Shape& b = args.b.data.shape;
  const std::int64_t m = args.a.transposed ? a[1] : a[0];
  const std::int64_t k = args.a.transposed ? a[0] : a[1];
  const std::int64_t n = args.b.transposed ? b[0] : b[1];
  const std::int64_t b_rows = args.b.transposed ? b[1] : b[0];
  if (b_rows != k) {
    check.fail(
        "b", format("{}{}", b.to_string(), args.b.transposed ? " transposed" : ""),
        format("{} rows, as a {}{} has columns", k, a.to_string(), args.a.transposed ? " transposed" : ""));
  }
  check.strided("c", args.c, {m, n});
  check.require(args.c.dtype == args.a.data.dtype || args.c.dtype == sum_type(args.a.data.dtype), "c",
                name_of(args.c.dtype), format("{} or its sum type", name_of(args.a.data.dtype)));
  check.apart("c", args.c, "a", args.a.data);
  check.apart("c", args.c, "b", args.b.data);
  if (args.accumulate) {
    check.require(!args.bias && args.activation == Activation::none && !args.pre_activation, "accumulate",
                  "true", "no bias, activation or pre_activation beside it");
  }
  if (args.bias) {
    check.exactly("bias", args.bias, args.a.data.dtype, {n});
    check.apart("c", args.c, "bias", args.bias);
  }
  if (args.pre_activation) {
    check.require(args.activation != Activation::none, "pre_activation", "given",
                  "none without an activation");
    check.strided("pre_activation", args.pre_activation, {m, n});
    check.dtype("pre_activation", args.pre_activation, args.c.dtype);
    check.apart("pre_activation", args.pre_activation, "c", args.c);
    check.apart("pre_activation", args.pre_activation, "a", args.a.data);
    check.apart("pre_activation", args.pre_activation, "b", args.b.data);
  }
}

void check_add_column_sums(const Tensor& sums, const Tensor& x) {
  const KernelCheck check("add_column_sums");
  check.rank("x", x, 2);
  check.contiguous("x", x, x.shape);
  check.compute_dtype("x", x);
  check.exactly("sums", sums, sum_type(x.dtype), {x.shape[1]});
  check.apart("sums", sums, "x", x);
}

void check_activation_forward(const Tensor& y, const Tensor& x) {
  const KernelCheck check("activation_forward");
  check.contiguous("x", x, x.shape);
  check.compute_dtype("x", x);
  check.exactly("y", y, x.dtype, x.shape);
  check.same_or_apart("y", y, "x", x);
}

void check_activation_backward(const Tensor& x_grad, const Tensor& y_grad, const Tensor& x) {
  const KernelCheck check("activation_backward");
  check.contiguous("x", x, x.shape);
  check.compute_dtype("x", x);
  check.exactly("y_grad", y_grad, x.dtype, x.shape);
  check.exactly("x_grad", x_grad, x.dtype, x.shape);
  check.same_or_apart("x_grad", x_grad, "y_grad", y_grad);
  check.same_or_apart("x_grad", x_grad, "x", x);
}

void check_layer_norm_forward(const LayerNormArgs& args) {
  const KernelCheck check("layer_norm_forward");
  check.rank("x", args.x, 2);
  check.contiguous("x", args.x, args.x.shape);
  check.compute_dtype("x", args.x);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t hidden = args.x.shape[1];
  const DType sum = sum_type(args.x.dtype);
  check.exactly("weight", args.weight, args.x.dtype, {hidden});
  check.exactly("bias", args.bias, args.x.dtype, {hidden});
  check.exactly("y", args.y, args.x.dtype, {rows, hidden});
  check.exactly("mean", args.mean, sum, {rows});
  check.exactly("rstd", args.rstd, sum, {rows});
  check.apart("y", args.y, "x", args.x);
}

void check_layer_norm_backward(const LayerNormBackwardArgs& args) {
  const KernelCheck check("layer_norm_backward");
  check.rank("x", args.x, 2);
  check.contiguous("x", args.x, args.x.shape);
  check.compute_dtype("x", args.x);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t hidden = args.x.shape[1];
  const DType compute = args.x.dtype;
  const DType sum = sum_type(compute);
  check.exactly("y_grad", args.y_grad, compute, {rows, hidden});
  check.exactly("weight", args.weight, compute, {hidden});
  check.exactly("mean", args.mean, sum, {rows});
  check.exactly("rstd", args.rstd, sum, {rows});
  if (args.residual) {
    check.exactly("residual", args.residual, compute, {rows, hidden});
    check.require(static_cast<bool>(args.x_grad), "residual", "given", "none without x_grad");
  }
  if (args.x_grad) {
    check.exactly("x_grad", args.x_grad, compute, {rows, hidden});
    check.apart("x_grad", args.x_grad, "x", args.x);
    check.same_or_apart("x_grad", args.x_grad, "y_grad", args.y_grad);
    if (args.residual) check.same_or_apart("x_grad", args.x_grad, "residual", args.residual);
  }
  if (args.weight_grad) check.exactly("weight_grad", args.weight_grad, sum, {hidden});
  if (args.bias_grad) check.exactly("bias_grad", args.bias_grad, sum, {hidden});
}

void check_dropout_add_forward(const DropoutAddArgs& args) {
  const KernelCheck check("dropout_add_forward");
  check.rank("x", args.x, 3);
  check.contiguous("x", args.x, args.x.shape);
  check.compute_dtype("x", args.x);
  const Shape& shape = args.x.shape;
  if (args.bias) check.exactly("bias", args.bias, args.x.dtype, {shape[2]});
  if (args.residual) check.exactly("residual", args.residual, args.x.dtype, shape);
  check.exactly("y", args.y, args.x.dtype, shape);
  check.same_or_apart("y", args.y, "x", args.x);
  if (args.residual) check.same_or_apart("y", args.y, "residual", args.residual);
  check.dropout(args.dropout, shape[0], 1, shape[1], shape[2]);
}

void check_dropout_backward(const Tensor& x_grad, const Tensor& y_grad, const DropoutArgs& dropout) {
  const KernelCheck check("dropout_backward");
  check.rank("y_grad", y_grad, 3);
  check.contiguous("y_grad", y_grad, y_grad.shape);
  check.compute_dtype("y_grad", y_grad);
  check.exactly("x_grad", x_grad, y_grad.dtype, y_grad.shape);
  check.same_or_apart("x_grad", x_grad, "y_grad", y_grad);
  check.dropout(dropout, y_grad.shape[0], 1, y_grad.shape[1], y_grad.shape[2]);
}

void check_embedding_forward(const EmbeddingArgs& args) {
  const KernelCheck check("embedding_forward");
  check.rank("table", args.table, 2);
  check.contiguous("table", args.table, args.table.shape);
  check.compute_dtype("table", args.table);
  check.rank("tokens", args.tokens, 1);
  check.exactly("tokens", args.tokens, DType::int32, args.tokens.shape);
  check.exactly("rows", args.rows, args.table.dtype, {args.tokens.shape[0], args.table.shape[1]});
  check.apart("rows", args.rows, "table", args.table);
}

void check_embedding_backward(const EmbeddingBackwardArgs& args) {
  const KernelCheck check("embedding_backward");
  check.rank("tokens", args.tokens, 1);
  check.exactly("tokens", args.tokens, DType::int32, args.tokens.shape);
  check.rank("rows_grad", args.rows_grad, 2);
  check.contiguous("rows_grad", args.rows_grad, {args.tokens.shape[0], args.rows_grad.shape[1]});
  check.compute_dtype("rows_grad", args.rows_grad);
  check.rank("table_grad", args.table_grad, 2);
  check.exactly("table_grad", args.table_grad, sum_type(args.rows_grad.dtype),
                {args.table_grad.shape[0], args.rows_grad.shape[1]});
  check.apart("table_grad", args.table_grad, "rows_grad", args.rows_grad);
}

void check_cross_entropy_forward(const CrossEntropyArgs& args) {
  const KernelCheck check("cross_entropy_forward");
  check.rank("logits", args.logits, 2);
  check.strided("logits", args.logits, args.logits.shape);
  check.compute_dtype("logits", args.logits);
  check_columns(check, args.logits, args.columns);
  const Shape rows = {args.logits.shape[0]};
  const DType sum = sum_type(args.logits.dtype);
  check.exactly("targets", args.targets, DType::int32, rows);
  check.exactly("row_max", args.row_max, sum, rows);
  check.exactly("row_sum", args.row_sum, sum, rows);
  check.exactly("target_logit", args.target_logit, sum, rows);
}

void check_cross_entropy_loss(const CrossEntropyLossArgs& args) {
  const KernelCheck check("cross_entropy_loss");
  check.rank("row_max", args.row_max, 1);
  check.require(args.row_max.dtype == DType::float32 || args.row_max.dtype == DType::float64, "row_max",
                name_of(args.row_max.dtype), "float32 or float64");
  const Shape& rows = args.row_max.shape;
  check.contiguous("row_max", args.row_max, rows);
  check.exactly("row_sum", args.row_sum, args.row_max.dtype, rows);
  check.exactly("target_logit", args.target_logit, args.row_max.dtype, rows);
  check.exactly("losses", args.losses, args.row_max.dtype, rows);
  check.apart("losses", args.losses, "row_max", args.row_max);
  check.apart("losses", args.losses, "row_sum", args.row_sum);
  check.apart("losses", args.losses, "target_logit", args.target_logit);
}

void check_cross_entropy_backward(const CrossEntropyBackwardArgs& args) {
  const KernelCheck check("cross_entropy_backward");
  check.rank("logits", args.logits, 2);
  check.strided("logits", args.logits, args.logits.shape);
  check.compute_dtype("logits", args.logits);
  check_columns(check, args.logits, args.columns);
  const Shape rows = {args.logits.shape[0]};
  const DType sum = sum_type(args.logits.dtype);
  check.exactly("targets", args.targets, DType::int32, rows);
  check.exactly("row_max", args.row_max, sum, rows);
  check.exactly("row_sum", args.row_sum, sum, rows);
  check.exactly("weights", args.weights, sum, rows);
  check.exactly("scale", args.scale, DType::float64, {1});
}

void check_add_weighted_sum(const Tensor& total, const Tensor& x, const Tensor& weights) {
  const KernelCheck check("add_weighted_sum");
  check.rank("x", x, 1);
  check.require(x.dtype == DType::float32 || x.dtype == DType::float64, "x", name_of(x.dtype),
                "float32 or float64");
  check.contiguous("x", x, x.shape);
  check.exactly("weights", weights, x.dtype, x.shape);
  check.exactly("total", total, DType::float64, {1});
}

void check_block_norms(const Tensor& partials, const Tensor& x) {
  const KernelCheck check("block_norms");
  check.rank("x", x, 1);
  check.contiguous("x", x, x.shape);
  check.compute_dtype("x", x);
  check.exactly("partials", partials, DType::float64, {ceil_divide(x.shape[0], norm_block)});
}

void check_clip_factor(const ClipFactorArgs& args) {
  const KernelCheck check("clip_factor");
  check.rank("partials", args.partials, 1);
  check.exactly("partials", args.partials, DType::float64, args.partials.shape);
  check.exactly("inverse_loss_scale", args.inverse_loss_scale, DType::float64, {1});
  check.require(args.max_norm >= 0.0, "max_norm", format("{}", args.max_norm), "0 (no clipping) or more");
  check.exactly("norm", args.norm, DType::float64, {1});
  check.exactly("gradient_scale", args.gradient_scale, DType::float64, {1});
}

void check_adamw(const AdamWArgs& args) {
  const KernelCheck check("adamw");
  check_optimizer_tensors(check, args.weights, args.gradient, args.compute_copy);
  check.exactly("exp_avg", args.exp_avg, args.weights.dtype, args.weights.shape);
  check.exactly("exp_avg_sq", args.exp_avg_sq, args.weights.dtype, args.weights.shape);
  check.exactly("learning_rate", args.learning_rate, DType::float64, {1});
  check.exactly("step", args.step, DType::int64, {1});
  check.exactly("gradient_scale", args.gradient_scale, DType::float64, {1});
}

void check_sgd(const SgdArgs& args) {
  const KernelCheck check("sgd");
  check_optimizer_tensors(check, args.weights, args.gradient, args.compute_copy);
  if (args.momentum_buffer) {
    check.exactly("momentum_buffer", args.momentum_buffer, args.weights.dtype, args.weights.shape);
  }
  check.require(static_cast<bool>(args.momentum_buffer) || args.momentum == 0.0, "momentum",
                format("{} without a momentum_buffer", args.momentum), "0, or a buffer");
  check.exactly("learning_rate", args.learning_rate, DType::float64, {1});
  check.exactly("gradient_scale", args.gradient_scale, DType::float64, {1});
}

}  // namespace megalith
