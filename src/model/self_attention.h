// The attention half of a pre-norm transformer layer:
//   y = x + dropout(proj(attention(qkv(norm(x)))) + bias)
// Rows of linear_qkv stand as in Megatron-Core: for each head its query, then its key, then its value.
#pragma once

#include <span>

#include "model/layer_buffers.h"
#include "model/linear.h"
#include "model/micro_batch.h"

namespace megalith {

/// Keys and values of one layer for generation: compute type [B, capacity, N, D].
struct LayerCache {
  Tensor keys;
  Tensor values;
};

/// Rows of a cached step: sequence b brings its last counts[b] of `steps` query rows (the rest is padding on
/// the left) and already has `before[b]` keys.
struct CachedStep {
  std::int64_t sequences = 0;
  std::int64_t steps = 0;
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> before;
  Tensor key_lengths;  ///< int32 [B]: before + counts
};

class SelfAttention {
 public:
  SelfAttention(const GptConfig& config, const ParameterStore& store, std::int64_t layer);

  /// Fills norm_1, mean_1, rstd_1, qkv, attended, log_sum_exp of `kept`; y [R, H] is written.
  void forward(Device& device, const MicroBatch& batch, Pass pass, const LayerActivations& kept,
               const Tensor& x, const Tensor& y) const;

  /// From y_grad [R, H] to gradients.input; leaves proj_output and qkv for backward_weight. The norm's
  /// parameter gradients are added here, they come from the same pass over the data.
  void backward_input(Device& device, const MicroBatch& batch, const LayerActivations& kept, const Tensor& x,
                      const Tensor& y_grad, const LayerGradients& gradients,
                      const LayerScratch& scratch) const;

  /// Adds the weight and bias gradients of linear_proj and linear_qkv.
  void backward_weight(Device& device, const LayerActivations& kept, const Tensor& x, const Tensor& y_grad,
                       const LayerGradients& gradients) const;

  /// As forward without dropout, with keys and values of x [B*steps, H] appended to `cache`. y has as many
  /// rows, and may be x's memory, or [B, H], for the last of each sequence alone. `kept` is scratch of x's
  /// rows.
  void forward_cached(Device& device, const CachedStep& step, const LayerCache& cache,
                      const LayerActivations& kept, const Tensor& x, const Tensor& y) const;

 private:
  struct Views {
    Tensor query;
    Tensor key;
    Tensor value;
  };
  Views split(const Tensor& qkv, std::int64_t sequences, std::int64_t length) const;
  AttentionArgs attention(const MicroBatch& batch, Pass pass, const LayerActivations& kept) const;
  /// The call for one sequence alone, with its own document boundaries.
  static AttentionArgs of_sequence(const AttentionArgs& all, const Tensor& cu_seqlens, std::int64_t sequence);

  GptConfig config_;
  Norm norm_;
  Linear qkv_;
  Linear proj_;
  PhiloxKey attention_key_;
  PhiloxKey output_key_;
  double scale_;
};

}  // namespace megalith
