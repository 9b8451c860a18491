#include "model/layer_buffers.h"

namespace megalith {

LayerActivations allocate_layer_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                            std::int64_t sequences, const CheapActivations& shared) {
  const std::int64_t rows = sequences * config.sequence;
  const DType compute = config.compute;
  const DType sum = config.sum();
  LayerActivations activations;
  activations.recompute_cheap = config.recompute == RecomputeGranularity::selective;
  if (activations.recompute_cheap) {
    activations.norm_1 = shared.norm;
    activations.norm_2 = shared.norm;
    activations.activated = shared.activated;
  } else {
    activations.norm_1 = arena.allocate(name + ".norm_1", compute, {rows, config.hidden});
    activations.norm_2 = arena.allocate(name + ".norm_2", compute, {rows, config.hidden});
    activations.activated = arena.allocate(name + ".activated", compute, {rows, config.ffn});
  }
  activations.mean_1 = arena.allocate(name + ".mean_1", sum, {rows});
  activations.rstd_1 = arena.allocate(name + ".rstd_1", sum, {rows});
  activations.qkv = arena.allocate(name + ".qkv", compute, {rows, 3 * config.attention_width()});
  activations.attended = arena.allocate(name + ".attended", compute, {rows, config.attention_width()});
  activations.log_sum_exp =
      arena.allocate(name + ".log_sum_exp", sum, {sequences, config.heads, config.sequence});
  activations.middle = arena.allocate(name + ".middle", compute, {rows, config.hidden});
  activations.mean_2 = arena.allocate(name + ".mean_2", sum, {rows});
  activations.rstd_2 = arena.allocate(name + ".rstd_2", sum, {rows});
  activations.preactivation = arena.allocate(name + ".preactivation", compute, {rows, config.ffn});
  return activations;
}

CheapActivations allocate_cheap_activations(Arena& arena, const std::string& name, const GptConfig& config,
                                            std::int64_t sequences) {
  if (config.recompute != RecomputeGranularity::selective) return {};
  const std::int64_t rows = sequences * config.sequence;
  return {arena.allocate(name + ".norm", config.compute, {rows, config.hidden}),
          arena.allocate(name + ".activated", config.compute, {rows, config.ffn})};
}

LayerGradients allocate_layer_gradients(Arena& inputs, Arena& arena, const std::string& name,
                                        const GptConfig& config, std::int64_t sequences) {
  const std::int64_t rows = sequences * config.sequence;
  const DType compute = config.compute;
  LayerGradients gradients;
  gradients.input = inputs.allocate(name + ".input", compute, {rows, config.hidden});
  gradients.middle = arena.allocate(name + ".middle", compute, {rows, config.hidden});
  if (config.hidden_dropout > 0.0) {
    gradients.mlp_output = arena.allocate(name + ".mlp_output", compute, {rows, config.hidden});
    gradients.proj_output = arena.allocate(name + ".proj_output", compute, {rows, config.hidden});
  }
  gradients.preactivation = arena.allocate(name + ".preactivation", compute, {rows, config.ffn});
  gradients.qkv = arena.allocate(name + ".qkv", compute, {rows, 3 * config.attention_width()});
  return gradients;
}

LayerScratch allocate_layer_scratch(Arena& arena, const std::string& name, const GptConfig& config,
                                    std::int64_t sequences) {
  const std::int64_t rows = sequences * config.sequence;
  return {arena.allocate(name + ".attended", config.compute, {rows, config.attention_width()}),
          arena.allocate(name + ".row_dots", config.sum(), {sequences, config.heads, config.sequence})};
}

}  // namespace megalith
