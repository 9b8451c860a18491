#include "data/json_document.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/utf8.h"

namespace megalith {
namespace {

using nlohmann::json;

/// The number in \uXXXX at `place`, or -1.
int escaped_unit(std::string_view text, std::size_t place) {
  if (place + 6 > text.size() || text[place] != '\\' || text[place + 1] != 'u') return -1;
  int value = 0;
  for (std::size_t i = 2; i < 6; ++i) {
    const char letter = text[place + i];
    const int digit = letter >= '0' && letter <= '9'   ? letter - '0'
                      : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                      : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/// The same JSON with U+FFFD for each byte that belongs to no character and for each escape of a lone
/// surrogate.
std::string with_replacements(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t place = 0;
  while (place < text.size()) {
    if (text[place] == '\\') {
      const int unit = escaped_unit(text, place);
      if (unit >= 0xd800 && unit <= 0xdbff) {
        const int second = escaped_unit(text, place + 6);
        const bool whole = second >= 0xdc00 && second <= 0xdfff;
        result.append(whole ? text.substr(place, 12) : "\\ufffd");
        place += whole ? 12 : 6;
        continue;
      }
      if (unit >= 0xdc00 && unit <= 0xdfff) {
        result.append("\\ufffd");
        place += 6;
        continue;
      }
      result.append(text.substr(place, 2));
      place += 2;
      continue;
    }
    const std::size_t length = utf8_sequence_at(text, place).bytes;
    if (length == 0) {
      result.append("\xef\xbf\xbd");
      ++place;
    } else {
      result.append(text.substr(place, length));
      place += length;
    }
  }
  return result;
}

/// The library's message without its own prefix and place.
std::string short_reason(std::string_view message) {
  if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
  if (message.starts_with("parse error at")) {
    if (const auto end = message.find(": "); end != std::string_view::npos) message.remove_prefix(end + 2);
  }
  // The rest quotes the offending text, which may be long or no UTF-8.
  if (const auto end = message.find("; last read"); end != std::string_view::npos)
    message = message.substr(0, end);
  return std::string(message);
}

}  // namespace

std::vector<std::vector<std::string>> texts_of_json_line(std::string_view text,
                                                         std::span<const std::string> keys,
                                                         std::string_view file, std::uint64_t line,
                                                         InvalidUtf8 invalid) {
  std::string replaced;
  if (invalid == InvalidUtf8::replace) {
    replaced = with_replacements(text);
    text = replaced;
  }
  json value;
  try {
    value = json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    const std::string reason = short_reason(error.what());
    const bool encoding =
        reason.find("UTF-8") != std::string::npos || reason.find("surrogate") != std::string::npos;
    fail(ErrorKind::input, format("{}:{}:{}", file, line, error.byte), "{}; {}", reason,
         encoding ? "repair the file, or give --invalid-utf8 replace"
                  : "expected one JSON object on each line");
  } catch (const json::exception& error) {
    fail(ErrorKind::input, format("{}:{}:1", file, line), "{}", short_reason(error.what()));
  }
  const std::string place = format("{}:{}:1", file, line);
  if (!value.is_object()) {
    fail(ErrorKind::input, place, "holds a JSON {}; expected one object on each line", value.type_name());
  }
  std::vector<std::vector<std::string>> result;
  result.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto found = value.find(key);
    if (found == value.end()) {
      std::string present;
      for (const auto& [name, unused] : value.items()) {
        if (present.size() < 80) present += (present.empty() ? "" : ", ") + name;
      }
      fail(ErrorKind::input, place,
           "has no key \"{}\"; it has: {}. Name the key that holds the text by --json-keys", key,
           present.empty() ? "none" : present);
    }
    std::vector<std::string> texts;
    if (found->is_string()) {
      texts.push_back(std::move(found->get_ref<std::string&>()));
    } else if (found->is_array()) {
      for (json& sentence : *found) {
        if (!sentence.is_string()) {
          fail(ErrorKind::input, place, "the list of key \"{}\" holds a {}; expected strings only", key,
               sentence.type_name());
        }
        texts.push_back(std::move(sentence.get_ref<std::string&>()));
      }
    } else {
      fail(ErrorKind::input, place, "key \"{}\" holds a {}; expected a string, or a list of strings", key,
           found->type_name());
    }
    result.push_back(std::move(texts));
  }
  return result;
}

}  // namespace megalith
