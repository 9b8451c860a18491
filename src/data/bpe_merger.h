// Byte-pair merges of one word (Sennrich, Haddow, Birch 2016): again and again the adjacent pair of lowest
// rank, the leftmost of equals, becomes one token. Short words by scanning, long ones with a heap over a
// linked list, O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/bpe_vocabulary.h"

namespace megalith {

/// Pair of tokens to rank, open addressing with linear probing.
class MergeTable {
 public:
  static constexpr std::uint32_t no_rank = 0xffffffff;

  /// Of two merges of one pair the later counts.
  explicit MergeTable(std::span<const BpeMerge> merges);

  std::uint32_t rank(Token left, Token right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].rank;
      if (slots_[slot].rank == no_rank) return no_rank;
    }
  }
  Token result(std::uint32_t rank) const { return results_[rank]; }

 private:
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    std::uint32_t rank = no_rank;
  };

  static std::uint64_t key_of(Token left, Token right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> shift_);
  }

  std::vector<Slot> slots_;
  std::vector<Token> results_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

class BpeMerger {
 public:
  explicit BpeMerger(const BpeVocabulary& vocabulary);

  /// Appends the tokens of `word`. Raises Error (input) for a word of 4 GiB or more. Thread-safe.
  void append(std::string_view word, std::vector<Token>& tokens) const;

 private:
  static constexpr std::size_t short_word = 48;

  void append_short(std::string_view word, std::vector<Token>& tokens) const;
  void append_long(std::string_view word, std::vector<Token>& tokens) const;

  std::array<Token, 256> byte_tokens_;
  MergeTable table_;
};

}  // namespace megalith
