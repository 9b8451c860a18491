#include "data/bpe_bytes.h"

#include "core/utf8.h"

namespace megalith {

ByteAlphabet::ByteAlphabet() {
  byte_of_.fill(-1);
  std::uint16_t next = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const std::uint16_t character = prints ? byte : next++;
    character_of_[byte] = character;
    byte_of_[character] = static_cast<std::int16_t>(byte);
  }
  std::size_t count = 0;
  for (const std::int16_t byte : byte_of_) {
    if (byte >= 0) order_[count++] = static_cast<std::uint8_t>(byte);
  }
}

std::string ByteAlphabet::to_text(std::string_view bytes) const {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const std::uint32_t character = character_of_[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text.push_back(static_cast<char>(character));
    } else {
      text.push_back(static_cast<char>(0xc0U | (character >> 6U)));
      text.push_back(static_cast<char>(0x80U | (character & 0x3fU)));
    }
  }
  return text;
}

std::optional<std::string> ByteAlphabet::to_bytes(std::string_view text) const {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    const Utf8Sequence sequence = utf8_sequence_at(text, place);
    if (sequence.bytes == 0 || sequence.code_point >= characters) return std::nullopt;
    const std::int16_t byte = byte_of_[sequence.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    place += sequence.bytes;
  }
  return bytes;
}

}  // namespace megalith
