#include "device/observed_device.h"

#include <chrono>

namespace megalith {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

template <typename Enqueue, typename Work>
void ObservedDevice::run(QueueKind queue, std::string_view kernel, DType dtype, const Work& work,
                         const Enqueue& enqueue) {
  if (!observer_) {
    enqueue();
    return;
  }
  inner_.synchronize(queue);
  KernelCall call{kernel, dtype, {}, now_seconds(), 0.0};
  enqueue();
  inner_.synchronize(queue);
  call.end = now_seconds();
  call.work = work();
  observer_(call);
}

void ObservedDevice::fill(QueueKind queue, const Tensor& to, double value) {
  run(queue, "fill", to.dtype, [&] { return kernel_work::fill(to); }, [&] { inner_.fill(queue, to, value); });
}

void ObservedDevice::copy(QueueKind queue, const Tensor& to, const Tensor& from) {
  run(
      queue, "copy", to.dtype, [&] { return kernel_work::copy(to, from); },
      [&] { inner_.copy(queue, to, from); });
}

void ObservedDevice::add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
                         double beta) {
  run(
      queue, "add", to.dtype, [&] { return kernel_work::add(to, a, b); },
      [&] { inner_.add(queue, to, a, alpha, b, beta); });
}

void ObservedDevice::initialize_normal(QueueKind queue, const InitializeNormalArgs& args) {
  run(
      queue, "initialize_normal", args.to.dtype, [&] { return kernel_work::initialize_normal(args); },
      [&] { inner_.initialize_normal(queue, args); });
}

void ObservedDevice::matmul(QueueKind queue, const MatmulArgs& args) {
  run(
      queue, "matmul", args.a.data.dtype, [&] { return kernel_work::matmul(args); },
      [&] { inner_.matmul(queue, args); });
}

void ObservedDevice::add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) {
  run(
      queue, "add_column_sums", x.dtype, [&] { return kernel_work::add_column_sums(sums, x); },
      [&] { inner_.add_column_sums(queue, sums, x); });
}

void ObservedDevice::activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) {
  run(
      queue, "activation_forward", x.dtype, [&] { return kernel_work::activation_forward(y, x); },
      [&] { inner_.activation_forward(queue, kind, y, x); });
}

void ObservedDevice::activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad,
                                         const Tensor& y_grad, const Tensor& x) {
  run(
      queue, "activation_backward", x.dtype,
      [&] { return kernel_work::activation_backward(x_grad, y_grad, x); },
      [&] { inner_.activation_backward(queue, kind, x_grad, y_grad, x); });
}

void ObservedDevice::attention_forward(QueueKind queue, const AttentionArgs& args) {
  run(
      queue, "attention_forward", args.query.dtype, [&] { return kernel_work::attention_forward(args); },
      [&] { inner_.attention_forward(queue, args); });
}

void ObservedDevice::attention_backward(QueueKind queue, const AttentionBackwardArgs& args) {
  run(
      queue, "attention_backward", args.forward.query.dtype,
      [&] { return kernel_work::attention_backward(args); }, [&] { inner_.attention_backward(queue, args); });
}

void ObservedDevice::layer_norm_forward(QueueKind queue, const LayerNormArgs& args) {
  run(
      queue, "layer_norm_forward", args.x.dtype, [&] { return kernel_work::layer_norm_forward(args); },
      [&] { inner_.layer_norm_forward(queue, args); });
}

void ObservedDevice::layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) {
  run(
      queue, "layer_norm_backward", args.x.dtype, [&] { return kernel_work::layer_norm_backward(args); },
      [&] { inner_.layer_norm_backward(queue, args); });
}

void ObservedDevice::dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) {
  run(
      queue, "dropout_add_forward", args.x.dtype, [&] { return kernel_work::dropout_add_forward(args); },
      [&] { inner_.dropout_add_forward(queue, args); });
}

void ObservedDevice::dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                                      const DropoutArgs& dropout) {
  run(
      queue, "dropout_backward", y_grad.dtype, [&] { return kernel_work::dropout_backward(x_grad, y_grad); },
      [&] { inner_.dropout_backward(queue, x_grad, y_grad, dropout); });
}

void ObservedDevice::embedding_forward(QueueKind queue, const EmbeddingArgs& args) {
  run(
      queue, "embedding_forward", args.table.dtype, [&] { return kernel_work::embedding_forward(args); },
      [&] { inner_.embedding_forward(queue, args); });
}

void ObservedDevice::embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) {
  run(
      queue, "embedding_backward", args.rows_grad.dtype,
      [&] { return kernel_work::embedding_backward(args); }, [&] { inner_.embedding_backward(queue, args); });
}

void ObservedDevice::cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) {
  run(
      queue, "cross_entropy_forward", args.logits.dtype,
      [&] { return kernel_work::cross_entropy_forward(args); },
      [&] { inner_.cross_entropy_forward(queue, args); });
}

void ObservedDevice::cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) {
  run(
      queue, "cross_entropy_loss", args.losses.dtype, [&] { return kernel_work::cross_entropy_loss(args); },
      [&] { inner_.cross_entropy_loss(queue, args); });
}

void ObservedDevice::cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) {
  run(
      queue, "cross_entropy_backward", args.logits.dtype,
      [&] { return kernel_work::cross_entropy_backward(args); },
      [&] { inner_.cross_entropy_backward(queue, args); });
}

void ObservedDevice::add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                                      const Tensor& weights) {
  run(
      queue, "add_weighted_sum", x.dtype, [&] { return kernel_work::add_weighted_sum(x, weights); },
      [&] { inner_.add_weighted_sum(queue, total, x, weights); });
}

void ObservedDevice::block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) {
  run(
      queue, "block_norms", x.dtype, [&] { return kernel_work::block_norms(partials, x); },
      [&] { inner_.block_norms(queue, partials, x); });
}

void ObservedDevice::clip_factor(QueueKind queue, const ClipFactorArgs& args) {
  run(
      queue, "clip_factor", args.partials.dtype, [&] { return kernel_work::clip_factor(args); },
      [&] { inner_.clip_factor(queue, args); });
}

void ObservedDevice::adamw(QueueKind queue, const AdamWArgs& args) {
  run(
      queue, "adamw", args.weights.dtype, [&] { return kernel_work::adamw(args); },
      [&] { inner_.adamw(queue, args); });
}

void ObservedDevice::sgd(QueueKind queue, const SgdArgs& args) {
  run(
      queue, "sgd", args.weights.dtype, [&] { return kernel_work::sgd(args); },
      [&] { inner_.sgd(queue, args); });
}

}  // namespace megalith
