#include "model/gpt_parameters.h"

#include <cmath>

namespace megalith {
namespace {

class TableBuilder {
 public:
  explicit TableBuilder(const GptConfig& config) : config_(config) {}

  Parameter& matrix(std::string name, std::int64_t rows, std::int64_t columns, double deviation,
                    std::int64_t stored_rows = 0) {
    Parameter parameter = start(std::move(name), {rows, columns}, stored_rows);
    parameter.init = {InitRule::Kind::normal, 0.0, deviation};
    return append(std::move(parameter));
  }

  void vector(std::string name, std::int64_t size, double value) {
    Parameter parameter = start(std::move(name), {size}, 0);
    parameter.init = {InitRule::Kind::constant, value, 0.0};
    parameter.weight_decay_mult = 0.0;
    append(std::move(parameter));
  }

  void norm(const std::string& name) {
    vector(name + ".weight", config_.hidden, 1.0);
    vector(name + ".bias", config_.hidden, 0.0);
  }

  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, double deviation) {
    matrix(name + ".weight", outputs, inputs, deviation);
    vector(name + ".bias", outputs, 0.0);
  }

  ParameterTable finish() {
    ParameterTable table;
    for (Parameter& parameter : rows_) table.add(std::move(parameter));
    return table;
  }

 private:
  Parameter start(std::string name, const Shape& shape, std::int64_t stored_rows) const {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.logical_shape = shape;
    parameter.dtype = config_.compute;
    parameter.shards = ShardMap::whole(shape, stored_rows);
    return parameter;
  }

  Parameter& append(Parameter parameter) {
    rows_.push_back(std::move(parameter));
    return rows_.back();
  }

  const GptConfig& config_;
  std::vector<Parameter> rows_;
};

}  // namespace

std::string layer_parameter_name(std::int64_t layer, std::string_view suffix) {
  return format("decoder.layers.{}.{}", layer, suffix);
}

ParameterTable build_gpt_parameter_table(const GptConfig& config) {
  config.check();
  TableBuilder builder(config);
  const double deviation = config.init_std;
  const double output_deviation = deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  const std::int64_t width = config.attention_width();
  const int tie_group = config.tied ? 0 : -1;

  builder
      .matrix("embedding.word_embeddings.weight", config.vocabulary, config.hidden, deviation,
              config.padded_vocabulary)
      .tie_group = tie_group;
  builder.matrix("embedding.position_embeddings.weight", config.max_positions, config.hidden, deviation);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    builder.norm(layer_parameter_name(layer, "input_layernorm"));
    builder.linear(layer_parameter_name(layer, "self_attention.linear_qkv"), 3 * width, config.hidden,
                   deviation);
    builder.linear(layer_parameter_name(layer, "self_attention.linear_proj"), config.hidden, width,
                   output_deviation);
    builder.norm(layer_parameter_name(layer, "pre_mlp_layernorm"));
    builder.linear(layer_parameter_name(layer, "mlp.linear_fc1"), config.ffn, config.hidden, deviation);
    builder.linear(layer_parameter_name(layer, "mlp.linear_fc2"), config.hidden, config.ffn,
                   output_deviation);
  }
  builder.norm("decoder.final_layernorm");
  builder.matrix("output_layer.weight", config.vocabulary, config.hidden, deviation, config.padded_vocabulary)
      .tie_group = tie_group;
  return builder.finish();
}

}  // namespace megalith
