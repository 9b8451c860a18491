// The only file that knows the TOML library.
#include <stdexcept>

// Some malformed texts break the library's own assumptions, which are undefined behaviour in release builds:
// they become exceptions here.
namespace megalith {
[[noreturn]] inline void toml_assumption_failed() {
  throw std::logic_error("unexpected character");
}
}  // namespace megalith
#undef NDEBUG
#define TOML_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::megalith::toml_assumption_failed())
#define TOML_MAX_NESTED_VALUES 8
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
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
    // TOML allows none but tabs; some versions of the library stop the program at one beside a key.
    for (std::size_t i = start; i < end; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool line_end = byte == '\r' && i + 1 == end;
      if ((byte >= 0x20 && byte != 0x7f) || byte == '\t' || line_end) continue;
      errors.push_back(format("{}:{}:{}: a control character (byte 0x{:02x}); a config is plain text", path,
                              line, i - start + 1, byte));
      return false;
    }
    start = end + 1;
  }
  return true;
}

/// Index after the string that begins at `start`, which holds a quote.
std::size_t skip_string(const std::string& text, std::size_t start) {
  const char quote = text[start];
  const std::string triple(3, quote);
  const bool long_string = text.compare(start, 3, triple) == 0;
  std::size_t i = start + (long_string ? 3 : 1);
  while (i < text.size()) {
    if (quote == '"' && text[i] == '\\') {
      i += 2;
    } else if (long_string ? text.compare(i, 3, triple) == 0 : text[i] == quote || text[i] == '\n') {
      i += long_string ? 3 : 1;
      while (long_string && i < text.size() && text[i] == quote) ++i;  // a text may end in quotes
      return i;
    } else {
      ++i;
    }
  }
  return text.size();
}

/// TOML allows letters beyond ASCII in strings and comments only; version 3.3 of the library has undefined
/// behaviour for some elsewhere.
bool is_ascii_outside_strings(const std::string& text, const std::string& path,
                              std::vector<std::string>& errors) {
  for (std::size_t i = text.starts_with("\xef\xbb\xbf") ? 3 : 0; i < text.size();) {
    if (text[i] == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '"' || text[i] == '\'') {
      const char before = i == 0 ? ' ' : text[i - 1];
      if (std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_' || before == '-' ||
          before == '.' || before == '+') {
        const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
        errors.push_back(format("{}:{}: a quote inside a word; quote the whole value", path, line));
        return false;
      }
      i = skip_string(text, i);
    } else if (static_cast<unsigned char>(text[i]) >= 0x80) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
      errors.push_back(
          format("{}:{}: a letter beyond ASCII outside quotes; quote the key or value", path, line));
      return false;
    } else {
      ++i;
    }
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
  if (!lines_are_sane(text, path, errors) || !is_ascii_outside_strings(text, path, errors)) return entries;
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
  } catch (const std::logic_error& error) {
    errors.push_back(format("{}: not valid TOML: {}", path, error.what()));
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
