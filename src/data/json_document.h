// The text of a document out of one line of JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What to do with bytes that are no UTF-8, and with escapes of half a surrogate pair.
enum class InvalidUtf8 : std::uint8_t { refuse, replace };

/// For each key the strings of its value: one for a string, several for a list of strings (sentences). Raises
/// Error (input) naming `file`:`line`:column for JSON that cannot be parsed, a line that is no object, a
/// missing key, and a value that is no text.
std::vector<std::vector<std::string>> texts_of_json_line(std::string_view json,
                                                         std::span<const std::string> keys,
                                                         std::string_view file, std::uint64_t line,
                                                         InvalidUtf8 invalid = InvalidUtf8::refuse);

}  // namespace megalith
