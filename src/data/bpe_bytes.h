// The byte-level alphabet of GPT-2's files: each of the 256 bytes is written as one printable character.
// Bytes that print in Latin-1 stand for themselves, the 68 others for U+0100, U+0101, ... in their order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

class ByteAlphabet {
 public:
  ByteAlphabet();

  /// "\xc3\xa9 x" as the files write it.
  std::string to_text(std::string_view bytes) const;
  /// The inverse; nothing where a character is not of the alphabet.
  std::optional<std::string> to_bytes(std::string_view text) const;
  /// The bytes in order of their characters, the order in which they are numbered.
  const std::array<std::uint8_t, 256>& order() const { return order_; }

 private:
  static constexpr std::uint32_t characters = 0x100 + 68;
  std::array<std::uint16_t, 256> character_of_{};
  std::array<std::int16_t, characters> byte_of_{};
  std::array<std::uint8_t, 256> order_{};
};

}  // namespace megalith
