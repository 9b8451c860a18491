// GPT-2's pre-tokenization: cuts text into words that byte-pair merges never cross, as the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// does (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"), by hand in one pass.
//
// Where a word begins depends on its neighbours alone: the classes of a character, the one before and the one
// after, and, behind an apostrophe, up to two letters. So a chunk of text is classified, its beginnings are
// marked, each by the same few operations on every byte without a branch, and only then are words given out.
// Characters outside ASCII are decoded one by one. Every byte is looked at a bounded number of times.
//
// Any bytes are accepted. A byte that does not belong to well-formed UTF-8 (overlong forms, surrogates and
// cut sequences included) counts by itself as a symbol: neither letter, number nor white space.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/pretokenizer_classes.h"

namespace megalith {

class Pretokenizer {
 public:
  explicit Pretokenizer(CharacterClasses classes);

  /// Calls word(std::string_view) for each word in order; together they are `text`.
  template <typename Word>
  void for_each_word(std::string_view text, Word&& word) const {
    std::size_t begin = 0;
    Chunk chunk;
    while (next_chunk(text, chunk)) {
      std::size_t group_begin = chunk.begin;
      for (const std::uint64_t group : chunk.starts) {
        for (std::uint64_t starts = group; starts != 0; starts &= starts - 1) {
          const std::size_t end = group_begin + static_cast<std::size_t>(std::countr_zero(starts));
          word(text.substr(begin, end - begin));
          begin = end;
        }
        group_begin += 64;
      }
    }
    if (begin < text.size()) word(text.substr(begin));
  }

 private:
  static constexpr std::size_t chunk_bytes = 1024;

  struct Chunk {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint8_t before = 0;  ///< what the marks say of the last byte before `end`
    /// A bit for each byte of the text from `begin` on: whether a word begins there. Not set for the first
    /// word of the text.
    std::array<std::uint64_t, chunk_bytes / 64> starts{};
  };

  bool next_chunk(std::string_view text, Chunk& chunk) const;
  CharacterClass class_at(std::string_view text, std::size_t place) const;

  CharacterClasses classes_;
};

}  // namespace megalith
