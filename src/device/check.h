// Checks of every kernel's arguments against the contract in device.h: ranks, shapes, dtypes, contiguity and
// aliasing. A device calls the check of a kernel before it enqueues anything, so that all devices refuse the
// same calls with the same words. A mismatch is a bug in the caller: Error (internal), naming the kernel, the
// argument, what was found and what was expected. Values behind addresses are not looked at.
//
// Whether a device has kernels for a dtype at all is the device's own business (Device::supports).
#pragma once

#include "device/device.h"

namespace megalith {

/// float64, float32, bfloat16 or float16.
bool is_float(DType dtype);

void check_copy_to_device(const Tensor& to, const void* host);
void check_copy_to_host(const void* host, const Tensor& from);
void check_fill(const Tensor& to);
/// Types are equal, or both are float types.
void check_copy(const Tensor& to, const Tensor& from);
void check_add(const Tensor& to, const Tensor& a, const Tensor& b);
void check_initialize_normal(const InitializeNormalArgs& args);
void check_matmul(const MatmulArgs& args);
void check_add_column_sums(const Tensor& sums, const Tensor& x);
void check_activation_forward(const Tensor& y, const Tensor& x);
void check_activation_backward(const Tensor& x_grad, const Tensor& y_grad, const Tensor& x);
/// Position offsets may not be combined with key_lengths or cu_seqlens, nor these two with each other.
void check_attention_forward(const AttentionArgs& args);
void check_attention_backward(const AttentionBackwardArgs& args);
void check_layer_norm_forward(const LayerNormArgs& args);
void check_layer_norm_backward(const LayerNormBackwardArgs& args);
void check_dropout_add_forward(const DropoutAddArgs& args);
void check_dropout_backward(const Tensor& x_grad, const Tensor& y_grad, const DropoutArgs& dropout);
void check_embedding_forward(const EmbeddingArgs& args);
void check_embedding_backward(const EmbeddingBackwardArgs& args);
void check_cross_entropy_forward(const CrossEntropyArgs& args);
void check_cross_entropy_loss(const CrossEntropyLossArgs& args);
void check_cross_entropy_backward(const CrossEntropyBackwardArgs& args);
void check_add_weighted_sum(const Tensor& total, const Tensor& x, const Tensor& weights);
void check_block_norms(const Tensor& partials, const Tensor& x);
void check_clip_factor(const ClipFactorArgs& args);
void check_adamw(const AdamWArgs& args);
void check_sgd(const SgdArgs& args);

}  // namespace megalith
