#include "model/gpt_config_json.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace megalith {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t extent_limit = std::int64_t{1} << 31;
// Each layer has rows in the parameter table before anything of it is compared with what is stored.
constexpr std::int64_t layer_limit = 1 << 16;

std::int64_t extent(const Json& json, const char* name, std::string_view place,
                    std::int64_t limit = extent_limit) {
  if (!json.contains(name) || !json[name].is_number_integer()) {
    fail(ErrorKind::input, place, "model.{}: expected a whole number in the checkpoint's metadata", name);
  }
  const auto value = json[name].get<std::int64_t>();
  if (value < 1 || value > limit)
    fail(ErrorKind::input, place, "model.{}: {} is out of range, expected 1 to {}", name, json[name].dump(),
         limit);
  return value;
}

std::string activation_name(Activation activation) {
  return activation == Activation::gelu_erf ? "gelu_erf" : "gelu_tanh";
}

// What GptConfig::check() would blame on the user's settings, and products that would not fit.
void check_consistent(const GptConfig& config, std::string_view place) {
  if (!(config.norm_epsilon > 0.0) || !std::isfinite(config.norm_epsilon)) {
    fail(ErrorKind::input, place, "model.norm_epsilon: {} is out of range, expected more than 0",
         config.norm_epsilon);
  }
  if (config.max_positions < config.sequence) {
    fail(ErrorKind::input, place, "model.max_position_embeddings: {} is less than seq_length {}",
         config.max_positions, config.sequence);
  }
  if (config.heads > extent_limit / config.head_size) {
    fail(ErrorKind::input, place,
         "model.num_attention_heads: {} heads of {} channels are too large to be true", config.heads,
         config.head_size);
  }
  const std::int64_t widest = std::max({config.hidden, config.ffn, config.attention_width(), config.sequence,
                                        config.max_positions, config.vocabulary});
  // Every matrix, and all of them together, stay far below 2^63 bytes.
  constexpr double element_limit = 0x1p56;
  const double elements =
      static_cast<double>(widest) * static_cast<double>(widest) * static_cast<double>(config.layers);
  if (elements > element_limit) {
    fail(ErrorKind::input, place, "model: {} layers of extents up to {} are too large to be true",
         config.layers, widest);
  }
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
  config.layers = extent(json, "num_layers", place, layer_limit);
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
  check_consistent(config, place);
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
