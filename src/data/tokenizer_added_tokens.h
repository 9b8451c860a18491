// Finds added tokens in text: the leftmost, and of those at one place the longest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace megalith {

class AddedTokenFinder {
 public:
  struct Entry {
    std::string content;  ///< 1 byte or more
    Token token;
  };
  struct Match {
    std::size_t begin;
    std::size_t end;
    Token token;
  };

  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<Entry> entries);

  bool empty() const { return entries_.empty(); }
  /// The next match at or after `begin`; begin == text.size() in the result where there is none.
  Match find(std::string_view text, std::size_t begin) const;

 private:
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  const Entry* longest_at(std::string_view text, std::size_t place) const;

  std::vector<Entry> entries_;              // sorted by content
  std::array<Range, 256> by_first_byte_{};  // of entries_
  int only_first_byte_ = -1;                // where all begin with the same byte
};

}  // namespace megalith
