// The tokens of words met before. Text repeats its words (Zipf's law), so most are found here and never
// merged again. A fixed number of slots, each word in one place: memory is bounded and a newer word takes the
// slot of an older one. To look one up takes no branch that depends on the word but the last: is it there?
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "data/byte_words.h"
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
    Key key{};                            // all zero: empty, because a key ends with the length, at least 1
    std::array<Token, longest> tokens{};  // -1 behind the last

    bool holds(const Key& wanted) const {
      std::uint64_t difference = 0;
      for (std::size_t i = 0; i < words; ++i) difference |= key[i] ^ wanted[i];
      return difference == 0;
    }
    std::size_t count() const {
      std::size_t count = 0;
      for (const Token token : tokens) count += token >= 0 ? 1 : 0;
      return count;
    }
  };

  explicit WordCache(unsigned bits) : slots_(std::size_t{1} << bits), shift_(64U - bits) {}

  /// The bytes of `word`, zeros, and its length in the last byte. `readable` bytes may be read from its
  /// beginning on.
  static Key key_of(std::string_view word, std::size_t readable) {
    Key key{};
    if (readable >= sizeof(Key)) {
      for (std::size_t i = 0; i < words; ++i) {
        // Bits of this part that belong to the word: 0, some, or all 64.
        const std::size_t end = word.size() > i * 8 ? word.size() - i * 8 : 0;
        const std::uint64_t mask = end >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * end)) - 1;
        key[i] = load_word(word.data() + i * 8) & mask;
      }
    } else {
      std::memcpy(key.data(), word.data(), word.size());
    }
    key[words - 1] |= std::uint64_t{word.size()} << 56U;
    return key;
  }
  Slot& slot(const Key& key) {
    std::uint64_t hash = 0;
    for (const std::uint64_t part : key) hash = std::rotl((hash ^ part) * 0x9e3779b97f4a7c15U, 32);
    return slots_[(hash * 0xd6e8feb86659fd93U) >> shift_];
  }

 private:
  std::vector<Slot> slots_;
  unsigned shift_;
};

/// What one call of encode works with; calls that follow take it over from one that has ended.
struct EncodeCache {
  WordCache<2, 4> short_words{17};
  WordCache<6, 48> long_words{12};  ///< and short words of many tokens: as many as a word has bytes
};

/// Tokens on their way to a vector: short rows of them are appended without a look at the vector.
class TokenSink {
 public:
  explicit TokenSink(std::vector<Token>& tokens) : tokens_(tokens) {}

  /// The first `count` of `row`.
  template <std::size_t size>
  void append(const std::array<Token, size>& row, std::size_t count) {
    static_assert(size <= capacity);
    if (used_ > capacity - size) flush();
    std::memcpy(held_.data() + used_, row.data(), sizeof row);
    used_ += count;
  }
  /// The vector, with all that was appended.
  std::vector<Token>& flush() {
    tokens_.insert(tokens_.end(), held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
    return tokens_;
  }

 private:
  static constexpr std::size_t capacity = 1024;

  std::vector<Token>& tokens_;
  std::size_t used_ = 0;
  std::array<Token, capacity> held_;  // NOLINT: filled as far as used
};

}  // namespace megalith
