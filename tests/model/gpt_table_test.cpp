#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/gpt_parameters.h"

namespace megalith {
namespace {

GptConfig gpt2_small() {
  GptConfig config;
  config.layers = 12;
  config.hidden = 768;
  config.ffn = 3072;
  config.heads = 12;
  config.head_size = 64;
  config.sequence = 1024;
  config.max_positions = 1024;
  config.vocabulary = 50257;
  config.padded_vocabulary = pad_vocabulary(50257, 128);
  return config;
}

TEST(GptTable, CountsGpt2AsItsPaperDoes) {
  GptConfig config = gpt2_small();
  EXPECT_EQ(config.padded_vocabulary, 50304);
  EXPECT_EQ(build_gpt_parameter_table(config).parameter_count(), 124439808);
  config.tied = false;
  EXPECT_EQ(build_gpt_parameter_table(config).parameter_count(), 124439808 + 50257LL * 768);
}

TEST(GptTable, HasMegatronCoresNamesShapesAndRules) {
  const ParameterTable table = build_gpt_parameter_table(gpt2_small());
  EXPECT_EQ(table.size(), 2 + 12 * 12 + 2 + 1);
  const auto row = [&](std::string_view name) {
    const int found = table.find(name);
    EXPECT_GE(found, 0) << name;
    return table[std::max(found, 0)];
  };
  EXPECT_EQ(row("embedding.word_embeddings.weight").logical_shape, (Shape{50257, 768}));
  EXPECT_EQ(row("embedding.word_embeddings.weight").shards.local_shape, (Shape{50304, 768}));
  EXPECT_EQ(row("embedding.position_embeddings.weight").logical_shape, (Shape{1024, 768}));
  EXPECT_EQ(row("decoder.layers.11.self_attention.linear_qkv.weight").logical_shape, (Shape{2304, 768}));
  EXPECT_EQ(row("decoder.layers.0.self_attention.linear_proj.weight").logical_shape, (Shape{768, 768}));
  EXPECT_EQ(row("decoder.layers.3.mlp.linear_fc1.weight").logical_shape, (Shape{3072, 768}));
  EXPECT_EQ(row("decoder.layers.3.mlp.linear_fc2.weight").logical_shape, (Shape{768, 3072}));
  EXPECT_EQ(row("output_layer.weight").tie_group, row("embedding.word_embeddings.weight").tie_group);

  EXPECT_DOUBLE_EQ(row("decoder.layers.0.mlp.linear_fc1.weight").init.deviation, 0.02);
  EXPECT_DOUBLE_EQ(row("decoder.layers.0.mlp.linear_fc2.weight").init.deviation, 0.02 / std::sqrt(24.0));
  EXPECT_DOUBLE_EQ(row("decoder.layers.0.self_attention.linear_proj.weight").init.deviation,
                   0.02 / std::sqrt(24.0));
  EXPECT_EQ(row("decoder.final_layernorm.weight").init.value, 1.0);
  EXPECT_EQ(row("decoder.layers.5.pre_mlp_layernorm.bias").init.value, 0.0);
  for (const Parameter& parameter : table.rows()) {
    EXPECT_EQ(parameter.weight_decay_mult, parameter.logical_shape.rank() == 1 ? 0.0 : 1.0) << parameter.name;
  }
}

// 6 B s [L (h (2q + 2k) + 2 h ffn + q s) + h V], by hand for GPT-2 124M, 4 samples:
// 6*4*1024*(12*(768*4*768 + 2*768*3072 + 768*1024) + 768*50257)
TEST(GptConfig, FlopsFollowTheFormula) {
  const double layer = 768.0 * 4 * 768 + 2.0 * 768 * 3072 + 768.0 * 1024;
  EXPECT_DOUBLE_EQ(training_flops(gpt2_small(), 4), 6.0 * 4 * 1024 * (12 * layer + 768.0 * 50257));
  EXPECT_DOUBLE_EQ(forward_flops_per_token(gpt2_small()) * 3 * 1024, training_flops(gpt2_small(), 1));
}

TEST(GptConfig, ReadsOptions) {
  TrainOptions options;
  options.num_layers = 2;
  options.hidden_size = 64;
  options.num_attention_heads = 4;
  options.seq_length = 32;
  options.max_position_embeddings = 64;
  options.make_vocab_size_divisible_by = 128;
  options.init_method_std = 0.02;
  options.activation = "gelu_erf";
  options.bf16 = true;
  options.untie_embeddings_and_output_weights = true;
  options.recompute_granularity = "full";
  options.recompute_method = "block";
  options.recompute_num_layers = 2;
  options.seed = 5;
  const GptConfig config = gpt_config(options, 300);
  EXPECT_EQ(config.ffn, 256);
  EXPECT_EQ(config.head_size, 16);
  EXPECT_EQ(config.vocabulary, 300);
  EXPECT_EQ(config.padded_vocabulary, 384);
  EXPECT_EQ(config.activation, Activation::gelu_erf);
  EXPECT_EQ(config.compute, DType::bfloat16);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.recompute_method, RecomputeMethod::block);
  EXPECT_EQ(config.seed, 5U);

  options.megatron_padded_softmax = true;
  EXPECT_EQ(gpt_config(options, 300).vocabulary, 384);
  EXPECT_EQ(gpt_config(options, 300).padded_vocabulary, 384);
  options.megatron_padded_softmax = false;

  options.num_attention_heads = 5;
  EXPECT_THROW(gpt_config(options, 300), Error);
  options.num_attention_heads = 4;
  options.max_position_embeddings = 16;
  EXPECT_THROW(gpt_config(options, 300), Error);
  options.max_position_embeddings = 64;
  options.hidden_dropout = 1.0;
  EXPECT_THROW(gpt_config(options, 300), Error);
}

}  // namespace
}  // namespace megalith
