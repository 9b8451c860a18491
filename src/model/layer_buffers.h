// What a transformer layer keeps from its forward pass for its backward pass, and what the backward pass
// itself needs. One function lists the tensors of each; a counting Arena turns the list into an exact figure
// of memory.
//
// Legend: R = B*S rows, H hidden, Q width of all heads, F MLP width, N heads.
#pragma once

#include <string>

#include "model/arena.h"
#include "model/gpt_config.h"

namespace megalith {

/// The layer's input and output belong to the stage. With selective recomputation norm_1, norm_2 and
/// activated are shared scratch, filled again when backward_weight wants them.
struct LayerActivations {
  Tensor norm_1;                 ///< [R, H] input of linear_qkv
  Tensor mean_1;                 ///< sum type [R]
  Tensor rstd_1;                 ///< sum type [R]
  Tensor qkv;                    ///< [R, 3Q]
  Tensor attended;               ///< [R, Q] input of linear_proj
  Tensor log_sum_exp;            ///< sum type [B, N, S]
  Tensor middle;                 ///< [R, H] residual stream between attention and MLP
  Tensor norm_2;                 ///< [R, H] input of linear_fc1
  Tensor mean_2;                 ///< sum type [R]
  Tensor rstd_2;                 ///< sum type [R]
  Tensor preactivation;          ///< [R, F]
  Tensor activated;              ///< [R, F] input of linear_fc2
  bool recompute_cheap = false;  ///< norm_1, norm_2 and activated are scratch
};

/// Gradients that both backward_input (which makes them) and backward_weight (which reads them) need, until
/// the latter has run.
struct LayerGradients {
  Tensor input;        ///< [R, H] of the layer's input
  Tensor middle;       ///< [R, H]
  Tensor mlp_output;   ///< [R, H] of linear_fc2's output; the layer's output gradient itself without dropout
  Tensor proj_output;  ///< [R, H] of linear_proj's output; middle itself without dropout
  Tensor preactivation;  ///< [R, F]
  Tensor qkv;            ///< [R, 3Q]
};

/// Scratch of one layer's backward_input.
struct LayerScratch {
  Tensor attended;  ///< [R, Q]
  Tensor row_dots;  ///< sum type [B, N, S]
};

/// Tensors that selective recomputation fills again, [R, H] and [R, F].
struct CheapActivations {
  Tensor norm;
  Tensor activated;
};

LayerActivations allocate_layer_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                            std::int64_t sequences, const CheapActivations& shared);
CheapActivations allocate_cheap_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                            std::int64_t sequences);
/// `inputs` gives the input's gradient, which the caller may hand on, `arena`
/// the rest.
LayerGradients allocate_layer_gradients(Arena& inputs, Arena& arena, const std::string& name,
                                        const GptConfig& config, std::int64_t sequences);
LayerScratch allocate_layer_scratch(Arena& arena, const std::string& name, const GptConfig& config,
                                    std::int64_t sequences);

}  // namespace megalith
