// The reference kernels: one function a kernel of device.h, one file a function (or a forward and backward
// pair). Arguments have been checked; HostView turns addresses into pointers.
#pragma once

#include "device/device.h"
#include "device/reference/memory.h"

namespace megalith::reference {

void copy_to_device(const HostView& view, const Tensor& to, const void* host);
void copy_to_host(const HostView& view, void* host, const Tensor& from);
void fill(const HostView& view, const Tensor& to, double value);
void copy(const HostView& view, const Tensor& to, const Tensor& from);
void add(const HostView& view, const Tensor& to, const Tensor& a, double alpha, const Tensor& b, double beta);
void initialize_normal(const HostView& view, const InitializeNormalArgs& args);
void matmul(const HostView& view, const MatmulArgs& args);
void add_column_sums(const HostView& view, const Tensor& sums, const Tensor& x);
void activation_forward(const HostView& view, Activation kind, const Tensor& y, const Tensor& x);
void activation_backward(const HostView& view, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                         const Tensor& x);
void attention_forward(const HostView& view, const AttentionArgs& args);
void attention_backward(const HostView& view, const AttentionBackwardArgs& args);
void layer_norm_forward(const HostView& view, const LayerNormArgs& args);
void layer_norm_backward(const HostView& view, const LayerNormBackwardArgs& args);
void dropout_add_forward(const HostView& view, const DropoutAddArgs& args);
void dropout_backward(const HostView& view, const Tensor& x_grad, const Tensor& y_grad,
                      const DropoutArgs& dropout);
void embedding_forward(const HostView& view, const EmbeddingArgs& args);
void embedding_backward(const HostView& view, const EmbeddingBackwardArgs& args);
void cross_entropy_forward(const HostView& view, const CrossEntropyArgs& args);
void cross_entropy_loss(const HostView& view, const CrossEntropyLossArgs& args);
void cross_entropy_backward(const HostView& view, const CrossEntropyBackwardArgs& args);
void add_weighted_sum(const HostView& view, const Tensor& total, const Tensor& x, const Tensor& weights);
void block_norms(const HostView& view, const Tensor& partials, const Tensor& x);
void clip_factor(const HostView& view, const ClipFactorArgs& args);
void adamw(const HostView& view, const AdamWArgs& args);
void sgd(const HostView& view, const SgdArgs& args);

}  // namespace megalith::reference
