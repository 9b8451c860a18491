#include "core/schema_values.h"

#include <charconv>
#include <cmath>

#include "core/format.h"

namespace megalith {
namespace {

/// Removes single underscores between digits ("1_000"); false where one stands elsewhere.
bool without_underscores(std::string_view word, std::string& digits) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  digits.clear();
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '_') {
      digits += word[i];
    } else if (i == 0 || i + 1 == word.size() || !digit(word[i - 1]) || !digit(word[i + 1])) {
      return false;
    }
  }
  return true;
}

bool read_integer(std::string_view word, std::int64_t& value, std::string& rule) {
  rule = "must be a whole number";
  std::string digits;
  if (!without_underscores(word, digits)) return false;
  std::string_view rest = digits;
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) {
    rule = "is beyond 64 bits (at most 9223372036854775807)";
    return false;
  }
  if (error == std::errc() && end == rest.data() + rest.size()) return true;
  double number = 0;
  const auto [number_end, number_error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const bool whole = number_error == std::errc() && number_end == rest.data() + rest.size() &&
                     number == std::floor(number) && std::abs(number) < 9e15;
  if (whole) rule += format("; write {}", static_cast<std::int64_t>(number));
  return false;
}

bool read_number(std::string_view word, double& value, std::string& rule) {
  rule = "must be a number";
  std::string digits;
  if (!without_underscores(word, digits)) return false;
  std::string_view rest = digits;
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) {
    rule = "is beyond what a float64 can hold";
    return false;
  }
  if (error != std::errc() || end != rest.data() + rest.size()) return false;
  if (std::isfinite(value)) return true;
  rule = "must be a finite number";
  return false;
}

bool read_switch(std::string_view word, bool& value) {
  if (word == "true" || word == "1" || word == "yes" || word == "on" || word == "True") {
    value = true;
    return true;
  }
  value = false;
  return word == "false" || word == "0" || word == "no" || word == "off" || word == "False";
}

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

template <typename Element, typename Write>
std::string join(const std::vector<Element>& elements, std::string_view separator, const Write& write) {
  std::string text;
  for (const Element& element : elements) {
    if (!text.empty()) text += separator;
    text += write(element);
  }
  return text;
}

}  // namespace

bool read_setting_value(std::span<const std::string> words, const SettingValue& like, SettingValue& value,
                        std::string& rule) {
  if (std::holds_alternative<std::vector<std::string>>(like)) {
    value = std::vector<std::string>(words.begin(), words.end());
    return true;
  }
  if (std::holds_alternative<std::vector<std::int64_t>>(like)) {
    std::vector<std::int64_t> numbers;
    for (const std::string& word : words) {
      if (!read_integer(word, numbers.emplace_back(), rule)) {
        rule = format("{} ('{}')", rule, word);
        return false;
      }
    }
    value = std::move(numbers);
    return true;
  }
  if (words.size() != 1) {
    rule = "needs exactly one value";
    return false;
  }
  const std::string& word = words[0];
  if (std::holds_alternative<bool>(like)) {
    bool flag = false;
    rule = "must be true or false";
    if (!read_switch(word, flag)) return false;
    value = flag;
  } else if (std::holds_alternative<std::int64_t>(like)) {
    std::int64_t number = 0;
    if (!read_integer(word, number, rule)) return false;
    value = number;
  } else if (std::holds_alternative<double>(like)) {
    double number = 0;
    if (!read_number(word, number, rule)) return false;
    value = number;
  } else {
    value = word;
  }
  return true;
}

bool convert_setting_value(const SettingValue& from, const SettingValue& like, SettingValue& value) {
  if (from.index() == like.index()) {
    value = from;
    return true;
  }
  const auto* integer = std::get_if<std::int64_t>(&from);
  const auto* text = std::get_if<std::string>(&from);
  if (integer != nullptr && std::holds_alternative<double>(like)) {
    value = static_cast<double>(*integer);
  } else if (integer != nullptr && std::holds_alternative<std::vector<std::int64_t>>(like)) {
    value = std::vector<std::int64_t>{*integer};
  } else if (text != nullptr && std::holds_alternative<std::vector<std::string>>(like)) {
    value = std::vector<std::string>{*text};
  } else {
    return false;
  }
  return true;
}

std::string_view setting_type_name(const SettingValue& value) {
  constexpr std::string_view names[] = {"switch", "integer", "number", "text", "integers", "texts"};
  return names[value.index()];
}

std::string shortest(double number) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, number);
  return {buffer, result.ptr};
}

std::string setting_text(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return shortest(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return join(*numbers, " ", [](std::int64_t element) { return format("{}", element); });
  }
  return join(std::get<std::vector<std::string>>(value), " ",
              [](const std::string& element) { return element; });
}

std::string setting_toml(const SettingValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    const std::string digits = shortest(*number);
    return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  }
  if (const auto* text = std::get_if<std::string>(&value)) return toml_string(*text);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return "[" + join(*numbers, ", ", [](std::int64_t element) { return format("{}", element); }) + "]";
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return "[" + join(*texts, ", ", [](const std::string& element) { return toml_string(element); }) + "]";
  }
  return setting_text(value);
}

bool is_negative_number(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  std::string digits;
  double number = 0;
  if (!without_underscores(word, digits)) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return end == digits.data() + digits.size() && error != std::errc::invalid_argument;
}

}  // namespace megalith
