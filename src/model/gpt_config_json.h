// A model's shape as JSON: what a checkpoint's metadata says of the model it holds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt_config.h"

namespace megalith {

/// Everything that decides the model's function, under Megatron's names; not how it is computed (type,
/// recomputation, dropout) nor how it is stored (padding).
nlohmann::json gpt_config_json(const GptConfig& config);

/// The inverse; dropouts 0, padding 1, compute type float32. `place` names the file in errors.
/// Raises Error (input) for fields that are missing, of another type or out of range.
GptConfig gpt_config_from_json(const nlohmann::json& json, std::string_view place);

/// "hidden_size: 768 in the checkpoint, 1024 in this run" for each field that differs.
std::vector<std::string> gpt_config_differences(const nlohmann::json& stored, const nlohmann::json& wanted);

}  // namespace megalith
