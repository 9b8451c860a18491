// The text of a document out of one line of JSON (RFC 8259). Only the strings that are asked for are kept;
// everything else is checked and passed over.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What to do with bytes that are no UTF-8, and with escapes of half a surrogate pair.
enum class InvalidUtf8 : std::uint8_t { refuse, replace };

/// Reads one line after another in the same memory.
class JsonTexts {
 public:
  /// `keys` outlives this.
  explicit JsonTexts(std::span<const std::string> keys, InvalidUtf8 invalid = InvalidUtf8::refuse)
      : keys_(keys), invalid_(invalid) {}

  /// For each key the strings of its value: one for a string, several for a list of strings (sentences). They
  /// live until the next call. Of a key that is there twice the last value counts. Raises Error (input)
  /// naming `file`:`line`:column for a line that is not JSON or no object, a missing key, and a value that is
  /// no text.
  std::span<const std::vector<std::string_view>> read(std::string_view json, std::string_view file,
                                                      std::uint64_t line);

 private:
  std::span<const std::string> keys_;
  InvalidUtf8 invalid_;
  std::vector<std::vector<std::string_view>> values_;
  std::string unescaped_;  // the bytes of all strings kept
};

}  // namespace megalith
