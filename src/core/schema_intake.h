// What a parse collects on its way: mistakes, notes, and the words that belong to no flag.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/schema.h"

namespace megalith {

/// One key of a TOML file with its place.
struct ConfigEntry {
  std::string section;  ///< empty at top level
  std::string key;
  std::string place;  ///< "gpt2.toml:4:1"
  SettingValue value;
  std::string unusable;  ///< why the value has no SettingValue ("is a table"); empty where it has
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct SchemaIntake {
  std::vector<std::string> errors;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> without_effect;  ///< reason, places
  std::vector<std::string> words;                                   ///< positional arguments
  std::vector<std::string> config_files;                            ///< in the order given
};

/// Reads a TOML file of at most 1 MiB into entries. Mistakes are appended to `errors`, each with
/// file:line:column.
std::vector<ConfigEntry> read_toml_entries(const std::string& path, std::vector<std::string>& errors);

/// The same from text; `path` is used in messages.
std::vector<ConfigEntry> parse_toml_entries(const std::string& text, const std::string& path,
                                            std::vector<std::string>& errors);

/// "; did you mean X?" or nothing.
std::string suggestion(std::string_view word, std::span<const std::string> candidates,
                       std::string_view prefix = "");

/// A key with dashes as underscores.
std::string key_form(std::string_view name);

}  // namespace megalith
