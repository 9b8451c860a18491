#include "data/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/utf8.h"

namespace megalith {
namespace {

/// The pattern read literally, one alternative after another, a character at a time.
class LiteralPattern {
 public:
  explicit LiteralPattern(std::string_view text) : text_(text) {}

  std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = word_end(begin);
      words.emplace_back(text_.substr(begin, end - begin));
      begin = end;
    }
    return words;
  }

 private:
  struct Character {
    CharacterClass kind;
    std::size_t end;
  };
  Character at(std::size_t place) const {
    const Utf8Sequence sequence = utf8_sequence_at(text_, place);
    if (sequence.bytes == 0) return {CharacterClass::symbol, place + 1};
    return {classes().of(sequence.code_point), place + sequence.bytes};
  }
  std::size_t run_end(std::size_t place, CharacterClass kind) const {
    while (place < text_.size() && at(place).kind == kind) place = at(place).end;
    return place;
  }
  std::size_t word_end(std::size_t begin) const {
    for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text_.substr(begin).starts_with(contraction)) return begin + contraction.size();
    }
    for (const CharacterClass kind :
         {CharacterClass::letter, CharacterClass::number, CharacterClass::symbol}) {
      const std::size_t first = text_[begin] == ' ' ? begin + 1 : begin;
      const std::size_t end = run_end(first, kind);
      if (end > first) return end;
    }
    const std::size_t end = run_end(begin, CharacterClass::space);
    if (end == text_.size()) return end;
    std::size_t last = begin;
    while (at(last).end < end) last = at(last).end;
    return last > begin ? last : end;
  }
  static const CharacterClasses& classes() {
    static const CharacterClasses loaded = CharacterClasses::load();
    return loaded;
  }

  std::string_view text_;
};

void expect_words_of_the_pattern(const Pretokenizer& pretokenizer, std::string_view text) {
  std::vector<std::string> words;
  pretokenizer.for_each_word(text, [&](std::string_view word) { words.emplace_back(word); });
  ASSERT_EQ(words, LiteralPattern(text).words()) << testing::PrintToString(std::string(text));
}

const std::vector<std::string> parts = {
    " ",      " ",      "  ",     "\n",     "\t", "a", "the", "I",    "7",        "2026",         "'",
    "'",      "'s",     "'ll",    "'re",    "'v", "!", "...", "é",    "日本語",   "١٢",           "½",
    "\u00a0", "\u3000", "\u2028", "\u0085", "“",  "’", "😀",  "\x80", "\xe6\x97", "\xf0\x9f\x98", "e\u0301"};

TEST(PretokenizerChunks, RandomTextsGiveTheWordsOfThePattern) {
  const Pretokenizer pretokenizer(CharacterClasses::load());
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t few = 1 + random() % parts.size();
    for (std::size_t count = random() % 40; count > 0; --count) text += parts[random() % few];
    expect_words_of_the_pattern(pretokenizer, text);
  }
}

TEST(PretokenizerChunks, WhatLiesAcrossTheEndOfAChunkIsNotCut) {
  const Pretokenizer pretokenizer(CharacterClasses::load());
  std::mt19937 random(12);
  for (const std::string filler : {"x", " ", "'", "1 ", "日", "\u3000", "\x80", "ab "}) {
    for (int round = 0; round < 150; ++round) {
      std::string text;
      while (text.size() < 1010) text += filler;
      text.resize(1010);  // may end in half a character
      for (std::size_t count = 12; count > 0; --count) text += parts[random() % parts.size()];
      if (round % 3 == 0) text += std::string(1000, 'y') + parts[random() % parts.size()] + "'s 'll";
      expect_words_of_the_pattern(pretokenizer, text);
    }
  }
}

TEST(PretokenizerChunks, AsciiClassesAreThoseOfTheTable) {
  const Pretokenizer pretokenizer(CharacterClasses::load());
  for (int before = 0; before < 128; ++before) {
    for (int after = 0; after < 128; ++after) {
      const std::string text = {'x', static_cast<char>(before), static_cast<char>(after), 'x'};
      expect_words_of_the_pattern(pretokenizer, text);
    }
  }
}

}  // namespace
}  // namespace megalith
