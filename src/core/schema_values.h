// Values of settings as text: reading them from words, writing them for messages and for TOML.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/schema.h"

namespace megalith {

/// Reads `words` as a value of the same type as `like` (arrays: any number of words, others: one). Returns
/// false and says in `rule` what a valid value looks like.
bool read_setting_value(std::span<const std::string> words, const SettingValue& like, SettingValue& value,
                        std::string& rule);

/// Converts between the types a TOML file or a default may give: an integer where a number is wanted, one
/// value where an array is wanted. Returns false where the types do not fit.
bool convert_setting_value(const SettingValue& from, const SettingValue& like, SettingValue& value);

/// "bool" -> "switch" and so on, for messages.
std::string_view setting_type_name(const SettingValue& value);

/// As one would type it after a flag: 3, 0.1, text, a b c.
std::string setting_text(const SettingValue& value);

/// As TOML: true, 3, 0.1, "text", ["a", "b"].
std::string setting_toml(const SettingValue& value);

/// Shortest decimal form that reads back to the same number.
std::string shortest(double number);

/// Whether a word that starts with a dash is a number.
bool is_negative_number(std::string_view word);

}  // namespace megalith
