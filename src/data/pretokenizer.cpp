#include "data/pretokenizer.h"

#include <utility>

#include "core/utf8.h"

namespace megalith {
namespace {

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

}  // namespace

Pretokenizer::Pretokenizer(CharacterClasses classes) : classes_(std::move(classes)) {
  first_byte_.fill(not_ascii);
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) {
    first_byte_[byte] = static_cast<std::uint8_t>(classes_.of(byte));
  }
}

Pretokenizer::Character Pretokenizer::wide_character_at(std::string_view text, std::size_t place) const {
  const Utf8Sequence sequence = utf8_sequence_at(text, place);
  if (sequence.bytes == 0) return {CharacterClass::symbol, 1};
  return {classes_.of(sequence.code_point), sequence.bytes};
}

std::size_t Pretokenizer::run_end(std::string_view text, std::size_t place, CharacterClass kind) const {
  const auto wanted = static_cast<std::uint8_t>(kind);
  while (place < text.size()) {
    const std::uint8_t found = first_byte_[static_cast<unsigned char>(text[place])];
    if (found == wanted) {
      ++place;
      continue;
    }
    if (found != not_ascii) break;
    const Character character = wide_character_at(text, place);
    if (character.kind != kind) break;
    place += character.bytes;
  }
  return place;
}

std::size_t Pretokenizer::white_space_end(std::string_view text, std::size_t begin,
                                          std::size_t second) const {
  std::size_t last = begin;
  std::size_t end = second;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (character.kind != CharacterClass::space) break;
    last = end;
    end += character.bytes;
  }
  // White space before a word leaves its last character to what follows; a single one stands alone.
  return end == text.size() || last == begin ? end : last;
}

std::size_t Pretokenizer::word_end(std::string_view text, std::size_t begin) const {
  const Character first = character_at(text, begin);
  const std::size_t second = begin + first.bytes;
  if (first.kind == CharacterClass::space) {
    if (text[begin] == ' ' && second < text.size()) {
      const Character next = character_at(text, second);
      if (next.kind != CharacterClass::space) return run_end(text, second + next.bytes, next.kind);
    }
    return white_space_end(text, begin, second);
  }
  if (text[begin] == '\'') {
    const std::size_t bytes = contraction_bytes(text, begin);
    if (bytes != 0) return begin + bytes;
  }
  return run_end(text, second, first.kind);
}

}  // namespace megalith
