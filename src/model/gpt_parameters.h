// The parameter table of a GPT under Megatron-Core's names, in the order in which a token meets them.
#pragma once

#include "model/gpt_config.h"
#include "model/parameter_table.h"

namespace megalith {

/// One row per parameter, layer N from 0, q = head_size * heads:
///   embedding.word_embeddings.weight [V, H], embedding.position_embeddings.weight [positions, H]
///   decoder.layers.N.input_layernorm.{weight, bias} [H]
///   decoder.layers.N.self_attention.linear_qkv.{weight [3q, H], bias}: each head's query, key, value rows
///   decoder.layers.N.self_attention.linear_proj.{weight [H, q], bias}
///   decoder.layers.N.pre_mlp_layernorm.{weight, bias} [H]
///   decoder.layers.N.mlp.linear_fc1.{weight [ffn, H], bias}, mlp.linear_fc2.{weight [H, ffn], bias}
///   decoder.final_layernorm.{weight, bias} [H], output_layer.weight [V, H]
/// Weights start normal with init_std, linear_proj and linear_fc2 with init_std/sqrt(2L); biases 0, norm
/// weights 1. One-dimensional parameters have no weight decay. With config.tied, output_layer.weight shares
/// embedding.word_embeddings.weight's storage (tie group 0).
ParameterTable build_gpt_parameter_table(const GptConfig& config);

/// "decoder.layers.3.mlp.linear_fc1.weight" for (3, "mlp.linear_fc1.weight").
std::string layer_parameter_name(std::int64_t layer, std::string_view suffix);

}  // namespace megalith
