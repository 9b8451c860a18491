// The only file that knows the TOML library.
#define TOML_MAX_NESTED_VALUES 8
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/schema_intake.h"

namespace megalith {
namespace {

constexpr std::uint64_t config_limit = std::uint64_t{1} << 20;
// A dotted key nests one table a dot, and tables are freed recursively.
constexpr std::ptrdiff_t dots_per_line = 500;

std::string place_of(const std::string& path, const toml::source_region& region) {
  return format("{}:{}:{}", path, region.begin.line, region.begin.column);
}

bool array_value(const toml::array& array, SettingValue& value, std::string& unusable) {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  bool all_integers = true;
  for (const toml::node& element : array) {
    if (const auto* integer = element.as_integer()) {
      integers.push_back(integer->get());
      texts.push_back(format("{}", integer->get()));
    } else if (const auto* number = element.as_floating_point()) {
      all_integers = false;
      texts.push_back(format("{}", number->get()));
    } else if (const auto* text = element.as_string()) {
      all_integers = false;
      texts.push_back(text->get());
    } else {
      unusable = "must be an array of plain values";
      return false;
    }
  }
  if (all_integers && !array.empty()) {
    value = std::move(integers);
  } else {
    value = std::move(texts);
  }
  return true;
}

ConfigEntry entry_of(const std::string& section, const toml::key& key, const toml::node& node,
                     const std::string& path) {
  ConfigEntry entry{section, std::string(key.str()),  place_of(path, key.source()), {},
                    {},      key.source().begin.line, key.source().begin.column};
  if (const auto* flag = node.as_boolean()) {
    entry.value = flag->get();
  } else if (const auto* integer = node.as_integer()) {
    entry.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    entry.value = number->get();
    if (!std::isfinite(number->get())) entry.unusable = "must be a finite number";
  } else if (const auto* text = node.as_string()) {
    entry.value = text->get();
  } else if (const auto* array = node.as_array()) {
    array_value(*array, entry.value, entry.unusable);
  } else if (node.is_table()) {
    entry.unusable = "is a table inside a section; sections do not nest";
  } else {
    entry.unusable = "is a date or time, which no key takes; quote it if text is meant";
  }
  return entry;
}

bool lines_are_sane(const std::string& text, const std::string& path, std::vector<std::string>& errors) {
  std::size_t line = 1;
  for (std::size_t start = 0; start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const auto dots = std::count(text.begin() + static_cast<std::ptrdiff_t>(start),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), '.');
    if (dots > dots_per_line) {
      errors.push_back(format("{}:{}:1: a line with {} dots; at most {}; break the line", path, line, dots,
                              dots_per_line));
      return false;
    }
    start = end + 1;
  }
  return true;
}

}  // namespace

std::vector<ConfigEntry> parse_toml_entries(const std::string& text, const std::string& path,
                                            std::vector<std::string>& errors) {
  std::vector<ConfigEntry> entries;
  if (text.size() > config_limit) {
    errors.push_back(format("{}: {} bytes; a config has at most {}", path, text.size(), config_limit));
    return entries;
  }
  if (!lines_are_sane(text, path, errors)) return entries;
  try {
    const toml::table root = toml::parse(std::string_view(text), std::string_view(path));
    for (const auto& [key, node] : root) {
      const toml::table* section = node.as_table();
      if (section == nullptr) {
        entries.push_back(entry_of("", key, node, path));
        continue;
      }
      for (const auto& [inner_key, inner] : *section) {
        entries.push_back(entry_of(std::string(key.str()), inner_key, inner, path));
      }
      if (section->empty()) {
        entries.push_back({std::string(key.str()),
                           "",
                           place_of(path, key.source()),
                           {},
                           {},
                           key.source().begin.line,
                           key.source().begin.column});
      }
    }
  } catch (const toml::parse_error& error) {
    errors.push_back(
        format("{}: not valid TOML: {}", place_of(path, error.source()), std::string(error.description())));
    entries.clear();
  }
  // The library's tables are sorted by name; people read files from top to bottom.
  std::sort(entries.begin(), entries.end(), [](const ConfigEntry& a, const ConfigEntry& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return entries;
}

std::vector<ConfigEntry> read_toml_entries(const std::string& path, std::vector<std::string>& errors) {
  try {
    return parse_toml_entries(read_file(path, config_limit), path, errors);
  } catch (const Error& error) {
    errors.push_back(format("--config {}: {}", path, error.what()));
    return {};
  }
}

}  // namespace megalith
