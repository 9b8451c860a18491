// What GPT-2's pre-tokenization asks of a character: letter, number, white space or anything else, by
// Unicode's general categories L and N and its property White_Space. The properties come from PCRE2 (the
// Unicode version is that of the installed library); a build without PCRE2 links a version of load() that
// says so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace megalith {

enum class CharacterClass : std::uint8_t { symbol, letter, number, space };

/// A two-stage table over all code points: 256 characters a page, equal pages stored once.
class CharacterClasses {
 public:
  static constexpr std::uint32_t code_points = 0x110000;

  /// Asks PCRE2 for every code point (some milliseconds). Raises Error (environment) where Megalith was built
  /// without PCRE2 or with one older than 10.40.
  static CharacterClasses load();

  /// `classes` holds one entry a code point.
  explicit CharacterClasses(const std::vector<CharacterClass>& classes);

  CharacterClass of(std::uint32_t code_point) const {
    return pages_[page_of_[code_point >> 8U]][code_point & 0xffU];
  }

 private:
  using Page = std::array<CharacterClass, 256>;
  std::array<std::uint16_t, code_points / 256> page_of_{};
  std::vector<Page> pages_;
};

}  // namespace megalith
