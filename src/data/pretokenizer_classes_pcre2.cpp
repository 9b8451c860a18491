#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "data/pretokenizer_classes.h"

namespace megalith {
namespace {

constexpr std::uint32_t first_surrogate = 0xd800;
constexpr std::uint32_t end_of_surrogates = 0xe000;

/// Surrogates are no characters; they stand here as U+FFFD, which keeps one character a code point.
void append_utf8(std::string& text, std::uint32_t code_point) {
  if (code_point >= first_surrogate && code_point < end_of_surrogates) code_point = 0xfffd;
  const auto append = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xc0U | (code_point >> 6U));
    append(0x80U | (code_point & 0x3fU));
  } else if (code_point < 0x10000) {
    append(0xe0U | (code_point >> 12U));
    append(0x80U | ((code_point >> 6U) & 0x3fU));
    append(0x80U | (code_point & 0x3fU));
  } else {
    append(0xf0U | (code_point >> 18U));
    append(0x80U | ((code_point >> 12U) & 0x3fU));
    append(0x80U | ((code_point >> 6U) & 0x3fU));
    append(0x80U | (code_point & 0x3fU));
  }
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

CharacterClasses CharacterClasses::load() {
  // Each match is one run of characters of a class, told apart by which group took part. White_Space is used
  // instead of \s, because PCRE2's \s also holds U+180E, which is no white space since Unicode 6.3.
  constexpr char pattern[] = "(\\p{L}+)|(\\p{N}+)|(\\p{White_Space}+)|([^\\p{L}\\p{N}\\p{White_Space}]+)";
  constexpr CharacterClass group_classes[] = {CharacterClass::letter, CharacterClass::number,
                                              CharacterClass::space, CharacterClass::symbol};
  int error = 0;
  PCRE2_SIZE error_place = 0;
  const std::unique_ptr<pcre2_code, FreeCode> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern),
                                                                 PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                                                 &error, &error_place, nullptr));
  if (!code) {
    fail(ErrorKind::environment, "tokenizer",
         "the installed PCRE2 does not know the Unicode property White_Space (its error {}); version 10.40 "
         "or newer "
         "is needed; install it and build again",
         error);
  }
  std::string text;
  text.reserve(std::size_t{code_points} * 4);
  for (std::uint32_t code_point = 0; code_point < code_points; ++code_point) append_utf8(text, code_point);

  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  if (!match) fail(ErrorKind::environment, "tokenizer", "out of memory while reading Unicode properties");
  std::vector<CharacterClass> classes;
  classes.reserve(code_points);
  std::size_t place = 0;
  while (place < text.size()) {
    const int groups = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), place,
                                   PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    MEGALITH_ASSERT(groups >= 2, format("PCRE2 answered {} at byte {} of all characters", groups, place));
    const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
    const CharacterClass found = group_classes[groups - 2];
    for (; place < end; ++place) {
      const bool starts_character = (static_cast<unsigned char>(text[place]) & 0xc0U) != 0x80U;
      if (starts_character) classes.push_back(found);
    }
  }
  return CharacterClasses(classes);
}

}  // namespace megalith
