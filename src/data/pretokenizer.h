// GPT-2's pre-tokenization: cuts text into words that byte-pair merges never cross, as the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// does (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"), by hand in one pass:
// every byte is looked at a bounded number of times whatever the text.
//
// Any bytes are accepted. A byte that does not belong to well-formed UTF-8 (overlong forms, surrogates and
// cut sequences included) counts by itself as a symbol: neither letter, number nor white space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/pretokenizer_classes.h"

namespace megalith {

class Pretokenizer {
 public:
  explicit Pretokenizer(CharacterClasses classes);

  /// End of the word that starts at byte `begin`; larger than `begin`, which must be below text.size().
  std::size_t word_end(std::string_view text, std::size_t begin) const;

  /// Calls word(std::string_view) for each word in order; together they are `text`.
  template <typename Word>
  void for_each_word(std::string_view text, Word&& word) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = word_end(text, begin);
      word(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  struct Character {
    CharacterClass kind;
    std::uint8_t bytes;
  };

  static constexpr std::uint8_t not_ascii = 0xff;

  Character character_at(std::string_view text, std::size_t place) const {
    const std::uint8_t kind = first_byte_[static_cast<unsigned char>(text[place])];
    if (kind != not_ascii) return {static_cast<CharacterClass>(kind), 1};
    return wide_character_at(text, place);
  }
  Character wide_character_at(std::string_view text, std::size_t place) const;
  std::size_t run_end(std::string_view text, std::size_t place, CharacterClass kind) const;
  std::size_t white_space_end(std::string_view text, std::size_t begin, std::size_t second) const;

  /// Class of an ASCII byte, not_ascii for others.
  std::array<std::uint8_t, 256> first_byte_{};
  CharacterClasses classes_;
};

}  // namespace megalith
