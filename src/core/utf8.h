// Well-formed UTF-8 (Unicode standard, table 3-7): no overlong forms, no surrogates, nothing past U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace megalith {

/// Length of the well-formed UTF-8 sequence at `place` and its code point; length 0 where there is none.
struct Utf8Sequence {
  std::uint32_t code_point;
  std::uint8_t bytes;
};
Utf8Sequence utf8_sequence_at(std::string_view text, std::size_t place);

/// Whether the bytes are well-formed UTF-8 throughout.
bool is_utf8(std::string_view text);

}  // namespace megalith
