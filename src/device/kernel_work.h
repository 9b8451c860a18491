// What one call of a kernel computes and moves at least: the FLOPs of its equation, and the bytes of its
// tensors, each read or written once. A kernel cannot be faster than these at the multiply-add peak and at
// the memory's bandwidth (device/yardsticks.h). One function per kernel and copy of device.h, of the same
// name.
//
// FLOPs are those of the formula, a multiply-add as two and an exponential or a tangent as ten; causal
// attention counts only the keys that a query sees. What only device memory knows (token numbers, key
// lengths, document boundaries) is taken at its most.
#pragma once

#include <string>

#include "device/device.h"

namespace megalith {

struct KernelWork {
  /// "float32 1024x3072x768 b'": what the call's time depends on, except for how long a cache of keys is.
  std::string shape;
  double flops = 0.0;
  double bytes_read = 0.0;
  double bytes_written = 0.0;

  double bytes() const { return bytes_read + bytes_written; }
};

namespace kernel_work {

KernelWork copy_to_device(const Tensor& to);
KernelWork copy_to_host(const Tensor& from);
KernelWork fill(const Tensor& to);
KernelWork copy(const Tensor& to, const Tensor& from);
KernelWork add(const Tensor& to, const Tensor& a, const Tensor& b);
KernelWork initialize_normal(const InitializeNormalArgs& args);
KernelWork matmul(const MatmulArgs& args);
KernelWork add_column_sums(const Tensor& sums, const Tensor& x);
KernelWork activation_forward(const Tensor& y, const Tensor& x);
KernelWork activation_backward(const Tensor& x_grad, const Tensor& y_grad, const Tensor& x);
KernelWork attention_forward(const AttentionArgs& args);
KernelWork attention_backward(const AttentionBackwardArgs& args);
KernelWork layer_norm_forward(const LayerNormArgs& args);
KernelWork layer_norm_backward(const LayerNormBackwardArgs& args);
KernelWork dropout_add_forward(const DropoutAddArgs& args);
KernelWork dropout_backward(const Tensor& x_grad, const Tensor& y_grad);
KernelWork embedding_forward(const EmbeddingArgs& args);
KernelWork embedding_backward(const EmbeddingBackwardArgs& args);
KernelWork cross_entropy_forward(const CrossEntropyArgs& args);
KernelWork cross_entropy_loss(const CrossEntropyLossArgs& args);
KernelWork cross_entropy_backward(const CrossEntropyBackwardArgs& args);
KernelWork add_weighted_sum(const Tensor& x, const Tensor& weights);
KernelWork block_norms(const Tensor& partials, const Tensor& x);
KernelWork clip_factor(const ClipFactorArgs& args);
KernelWork adamw(const AdamWArgs& args);
KernelWork sgd(const SgdArgs& args);

}  // namespace kernel_work
}  // namespace megalith
