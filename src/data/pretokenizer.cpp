#include "data/pretokenizer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "data/byte_words.h"

namespace megalith {
namespace {

// What is noted of each byte: its character's class in the two low bits, and whether it is a blank (U+0020),
// the only white space that joins the word behind it.
constexpr std::uint8_t class_bits = 3;
constexpr std::uint8_t blank_bit = 4;
constexpr auto space = static_cast<std::uint8_t>(CharacterClass::space);
static_assert(static_cast<int>(CharacterClass::symbol) == 0 && space == class_bits);

/// Bytes of the contraction ('s 't 're 've 'm 'll 'd) at `place`, where an apostrophe stands; 0 where there
/// is none.
std::size_t contraction_bytes(std::string_view text, std::size_t place) {
  if (place + 1 >= text.size()) return 0;
  const char first = text[place + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (place + 2 >= text.size()) return 0;
  const char second = text[place + 2];
  const bool long_form =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return long_form ? 3 : 0;
}

/// Where a chunk that may end at `end` ends: not within a character, and not within three bytes behind an
/// apostrophe, so that no contraction lies across.
std::size_t chunk_end(std::string_view text, std::size_t end) {
  const auto continues = [&](std::size_t place) {
    return (static_cast<unsigned char>(text[place]) & 0xc0U) == 0x80U;
  };
  // Four continuation bytes in a row belong to no character, at least the last of them.
  std::size_t start = end;
  while (end - start < 3 && continues(start)) --start;
  if (!continues(start)) end = start;
  for (std::size_t back = 1; back <= 3; ++back) {
    if (text[end - back] == '\'') return end - back;
  }
  return end;
}

/// Notes of ASCII text; other bytes count as symbols. Gives whether there are any such.
bool note_ascii(const unsigned char* text, std::size_t count, std::uint8_t* notes) {
  unsigned char all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char byte = text[i];
    const auto below = [byte](unsigned char first, unsigned char size, unsigned char folded) {
      return static_cast<std::uint8_t>(static_cast<unsigned char>((byte | folded) - first) < size ? 0xff : 0);
    };
    const std::uint8_t letter = below('a', 26, 0x20);
    const std::uint8_t number = below('0', 10, 0);
    const std::uint8_t control_space = below('\t', 5, 0);
    const std::uint8_t blank = below(' ', 1, 0);
    notes[i] = static_cast<std::uint8_t>((letter & static_cast<std::uint8_t>(CharacterClass::letter)) |
                                         (number & static_cast<std::uint8_t>(CharacterClass::number)) |
                                         (control_space & space) | (blank & (space | blank_bit)));
    all |= byte;
  }
  return all >= 0x80;
}

/// A word begins where the class changes, but not behind a blank, which belongs to it; white space is a word
/// up to its last character, which is one by itself or the blank of the next. `notes` [count + 2] begins one
/// place before the first.
void mark_starts(const std::uint8_t* notes, std::size_t count, std::uint8_t* starts) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto is = [](bool condition) { return static_cast<std::uint8_t>(condition ? 1 : 0); };
    const std::uint8_t before = notes[i];
    const std::uint8_t here = notes[i + 1] & class_bits;
    const std::uint8_t is_space = is(here == space);
    const std::uint8_t changes = is((before & class_bits) != here);
    const std::uint8_t ends = is((notes[i + 2] & class_bits) != space);
    const std::uint8_t after_blank = is(before == (space | blank_bit));
    starts[i] = static_cast<std::uint8_t>((changes & (is_space | (after_blank ^ 1U))) | (is_space & ends));
  }
}

}  // namespace

Pretokenizer::Pretokenizer(CharacterClasses classes) : classes_(std::move(classes)) {}

CharacterClass Pretokenizer::class_at(std::string_view text, std::size_t place) const {
  const Utf8Sequence sequence = utf8_sequence_at(text, place);
  return sequence.bytes == 0 ? CharacterClass::symbol : classes_.of(sequence.code_point);
}

bool Pretokenizer::next_chunk(std::string_view text, Chunk& chunk) const {
  if (chunk.end == text.size()) return false;
  const std::size_t begin = chunk.end;
  const bool last = text.size() - begin <= chunk_bytes;
  const std::size_t end = last ? text.size() : chunk_end(text, begin + chunk_bytes);
  const std::size_t count = end - begin;

  alignas(64) std::array<std::uint8_t, chunk_bytes + 2> noted;  // NOLINT: filled below as far as used
  alignas(64) std::array<std::uint8_t, chunk_bytes> starts;     // NOLINT: likewise
  std::uint8_t* const notes = noted.data() + 1;
  notes[-1] = chunk.before;
  // White space at the end of the text has no last character of its own.
  notes[count] = last ? space : static_cast<std::uint8_t>(class_at(text, end));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data()) + begin;

  struct WideSpace {
    std::size_t place;
    std::size_t bytes;
  };
  std::vector<WideSpace> wide_spaces;
  if (note_ascii(bytes, count, notes)) {
    for (std::size_t i = 0; i < count;) {
      if (i + 8 <= count && (load_word(bytes + i) & high_bits) == 0) {
        i += 8;
        continue;
      }
      const Utf8Sequence sequence = utf8_sequence_at(text, begin + i);
      if (sequence.bytes > 1) {
        const CharacterClass found = classes_.of(sequence.code_point);
        std::fill_n(notes + i, sequence.bytes, static_cast<std::uint8_t>(found));
        if (found == CharacterClass::space) wide_spaces.push_back({i, sequence.bytes});
      }
      i += std::max<std::size_t>(sequence.bytes, 1);
    }
  }
  mark_starts(noted.data(), count, starts.data());
  for (const WideSpace& wide : wide_spaces) {
    const auto is_space = [&](const std::uint8_t& note) { return (note & class_bits) == space; };
    std::fill_n(starts.begin() + static_cast<std::ptrdiff_t>(wide.place), wide.bytes, std::uint8_t{0});
    starts[wide.place] = is_space(noted[wide.place]) && is_space(notes[wide.place + wide.bytes]) ? 0 : 1;
  }
  if (begin == 0) starts[0] = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const void* const found = std::memchr(bytes + i, '\'', count - i);
    if (found == nullptr) break;
    i = static_cast<std::size_t>(static_cast<const unsigned char*>(found) - bytes);
    const std::size_t length = starts[i] == 0 ? 0 : contraction_bytes(text, begin + i);
    if (length == 0) continue;
    for (std::size_t k = 1; k < length; ++k) starts[i + k] = 0;
    if (i + length < count) starts[i + length] = 1;
  }
  if (begin == 0) starts[0] = 0;

  chunk.begin = begin;
  chunk.end = end;
  chunk.before = notes[count - 1];
  std::memset(starts.data() + count, 0, starts.size() - count);
  for (std::size_t group = 0; group < chunk.starts.size(); ++group) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      bits |= packed_bits(load_word(starts.data() + group * 64 + k * 8)) << (8 * k);
    }
    chunk.starts[group] = bits;
  }
  return true;
}

}  // namespace megalith
