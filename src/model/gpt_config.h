// GptConfig: the shape of a GPT-2 style decoder and what is computed with it. Every later decision
// (parameters, activations, memory, FLOPs) follows from these fields.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/options.h"
#include "device/device.h"

namespace megalith {

/// What is computed again in the backward pass instead of kept (Korthikanti et al. 2022, section 5).
/// selective: outputs of both layer norms and of the MLP's activation, the cheapest of what a layer keeps.
/// (Megatron's selective recomputes the attention core; the tiled attention here never stores anything
/// quadratic.) full: only the inputs of whole layers are kept.
enum class RecomputeGranularity : std::uint8_t { none, selective, full };

/// uniform: layers are grouped by recompute_layers, and the input of each group is kept.
/// block: the first recompute_layers layers of a stage are recomputed one by one, the others keep everything.
enum class RecomputeMethod : std::uint8_t { uniform, block };

struct GptConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t heads = 0;
  std::int64_t head_size = 0;          ///< Megatron's kv_channels
  std::int64_t sequence = 0;           ///< tokens a sample
  std::int64_t max_positions = 0;      ///< rows of the position table
  std::int64_t vocabulary = 0;         ///< true number of tokens
  std::int64_t padded_vocabulary = 0;  ///< rows stored; the ones past `vocabulary` take part in nothing
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  double init_std = 0.02;
  double norm_epsilon = 1e-5;
  bool tied = true;  ///< the output layer is the word embedding
  Activation activation = Activation::gelu_tanh;
  DType compute = DType::float32;
  RecomputeGranularity recompute = RecomputeGranularity::none;
  RecomputeMethod recompute_method = RecomputeMethod::uniform;
  std::int64_t recompute_layers = 1;
  std::uint64_t seed = 1234;  ///< of initialisation and dropout

  /// Width of all heads together.
  std::int64_t attention_width() const { return heads * head_size; }
  DType sum() const { return sum_type(compute); }
  /// Type of master weights and of the optimizer's state.
  DType master() const { return sum_type(compute); }

  /// Raises Error (usage) at the first value that no model can have.
  void check() const;
};

/// Reads resolved options (core/options.h). `vocabulary` is the tokenizer's size where the options name none.
/// Raises Error (usage) for a value that does not fit.
GptConfig gpt_config(const TrainOptions& options, std::int64_t vocabulary);

/// Rows stored for a vocabulary: the next multiple of `divisible_by` (at least 1).
std::int64_t pad_vocabulary(std::int64_t vocabulary, std::int64_t divisible_by);

/// Model FLOPs of one training step over `samples` sequences: 6 a parameter and token, causal attention
/// counted half, true vocabulary, recomputation not counted:
///   6 samples s [ L ( h (2q + 2k) + 2 h ffn + q s ) + h V ], q = k = head_size * heads.
double training_flops(const GptConfig& config, std::int64_t samples);

/// The same without the backward pass, for one token of a full sequence.
double forward_flops_per_token(const GptConfig& config);

}  // namespace megalith
