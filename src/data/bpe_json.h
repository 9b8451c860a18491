// JSON from outside as a tree, with the project's errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace megalith {

/// Raises Error (input) with the byte where `text` stops being JSON.
nlohmann::json parse_untrusted_json(std::string_view text, const std::string& name);

/// A JSON string literal.
std::string json_quoted(std::string_view text);

}  // namespace megalith
