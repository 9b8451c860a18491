// The tokens of words met before. Text repeats its words (Zipf's law), so most are found here and never
// merged again. A fixed number of slots, each word in one place: memory is bounded and a newer word takes the
// slot of an older one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace megalith {

/// Words of up to 8 * words - 1 bytes that have at most `longest` tokens.
template <std::size_t words, std::size_t longest>
class WordCache {
 public:
  static constexpr std::size_t word_limit = words * 8 - 1;
  static constexpr std::size_t token_limit = longest;
  using Key = std::array<std::uint64_t, words>;
  struct Slot {
    Key key{};  // all zero: empty, because a key ends with the length, at least 1
    std::array<Token, longest> tokens{};
  };

  explicit WordCache(unsigned bits) : slots_(std::size_t{1} << bits), shift_(64U - bits) {}

  /// The bytes of `word`, zeros, and its length in the last byte.
  static Key key_of(std::string_view word) {
    Key key{};
    std::memcpy(key.data(), word.data(), word.size());
    key[words - 1] |= std::uint64_t{word.size()} << 56U;
    return key;
  }
  Slot& slot(const Key& key) {
    std::uint64_t hash = 0;
    for (const std::uint64_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32U;
    hash *= 0xd6e8feb86659fd93U;
    return slots_[hash >> shift_];
  }

 private:
  std::vector<Slot> slots_;
  unsigned shift_;
};

/// What one call of encode works with; calls that follow take it over from one that has ended.
struct EncodeCache {
  WordCache<2, 4> short_words{15};
  WordCache<6, 20> long_words{12};
};

}  // namespace megalith
