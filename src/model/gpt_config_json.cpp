#include "model/gpt_config_json.h"

#include <cmath>

#include "core/error.h"

namespace megalith {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t extent_limit = std::int64_t{1} << 32;

std::int64_t extent(const Json& json, const char* name, std::string_view place) {
  if (!json.contains(name) || !json[name].is_number_integer()) {
    fail(ErrorKind::input, place, "model.{}: expected a whole number in the checkpoint's metadata", name);
  }
  const auto value = json[name].get<std::int64_t>();
  if (value < 1 || value > extent_limit)
    fail(ErrorKind::input, place, "model.{}: {} is out of range", name, value);
  return value;
}

std::string activation_name(Activation activation) {
  return activation == Activation::gelu_erf ? "gelu_erf" : "gelu_tanh";
}

}  // namespace

Json gpt_config_json(const GptConfig& config) {
  return {{"type", "gpt"},
          {"num_layers", config.layers},
          {"hidden_size", config.hidden},
          {"ffn_hidden_size", config.ffn},
          {"num_attention_heads", config.heads},
          {"kv_channels", config.head_size},
          {"seq_length", config.sequence},
          {"max_position_embeddings", config.max_positions},
          {"vocab_size", config.vocabulary},
          {"norm_epsilon", config.norm_epsilon},
          {"activation", activation_name(config.activation)},
          {"untie_embeddings_and_output_weights", !config.tied}};
}

GptConfig gpt_config_from_json(const Json& json, std::string_view place) {
  if (!json.is_object() || json.value("type", Json()) != "gpt") {
    fail(ErrorKind::input, place, "the checkpoint's metadata describes no model of type gpt");
  }
  GptConfig config;
  config.layers = extent(json, "num_layers", place);
  config.hidden = extent(json, "hidden_size", place);
  config.ffn = extent(json, "ffn_hidden_size", place);
  config.heads = extent(json, "num_attention_heads", place);
  config.head_size = extent(json, "kv_channels", place);
  config.sequence = extent(json, "seq_length", place);
  config.max_positions = extent(json, "max_position_embeddings", place);
  config.vocabulary = extent(json, "vocab_size", place);
  config.padded_vocabulary = config.vocabulary;
  const Json epsilon = json.value("norm_epsilon", Json());
  if (!epsilon.is_number())
    fail(ErrorKind::input, place, "model.norm_epsilon: expected a number in the checkpoint's metadata");
  config.norm_epsilon = epsilon.get<double>();
  const Json activation = json.value("activation", Json());
  if (activation != "gelu_tanh" && activation != "gelu_erf") {
    fail(ErrorKind::input, place, "model.activation: {} is not known here", activation.dump());
  }
  config.activation = activation == "gelu_erf" ? Activation::gelu_erf : Activation::gelu_tanh;
  const Json untied = json.value("untie_embeddings_and_output_weights", Json());
  if (!untied.is_boolean()) {
    fail(ErrorKind::input, place, "model.untie_embeddings_and_output_weights: expected true or false");
  }
  config.tied = !untied.get<bool>();
  return config;
}

std::vector<std::string> gpt_config_differences(const Json& stored, const Json& wanted) {
  std::vector<std::string> differences;
  for (const auto& [name, value] : wanted.items()) {
    const Json found = stored.is_object() ? stored.value(name, Json()) : Json();
    if (found != value)
      differences.push_back(
          format("{}: {} in the checkpoint, {} in this run", name, found.dump(), value.dump()));
  }
  return differences;
}

}  // namespace megalith
