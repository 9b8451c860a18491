// Eight bytes of text at a time in one 64-bit integer, the first byte lowest, and tests over all eight at
// once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace megalith {

inline constexpr std::uint64_t each_byte = 0x0101010101010101U;
inline constexpr std::uint64_t high_bits = 0x8080808080808080U;

inline std::uint64_t load_word(const void* bytes) {
  static_assert(std::endian::native == std::endian::little, "bytes lie lowest first, as in the files");
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}
inline void store_word(void* bytes, std::uint64_t word) {
  std::memcpy(bytes, &word, sizeof word);
}

/// High bits of bytes below `limit` (up to 0x80). Bytes above the lowest one marked may be marked wrongly.
inline std::uint64_t bytes_below(std::uint64_t word, std::uint8_t limit) {
  return (word - each_byte * limit) & ~word & high_bits;
}
/// High bits of bytes that are `byte`. Bytes above the lowest one marked may be marked wrongly.
inline std::uint64_t bytes_equal(std::uint64_t word, char byte) {
  return bytes_below(word ^ (each_byte * static_cast<unsigned char>(byte)), 1);
}
/// Number of the lowest byte whose high bit is marked; `marks` is not 0.
inline std::size_t first_marked(std::uint64_t marks) {
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}
/// Eight bytes of 0 or 1 as eight bits, the first byte's lowest.
inline std::uint64_t packed_bits(std::uint64_t flags) {
  return (flags * 0x0102040810204080U) >> 56U;
}

}  // namespace megalith
