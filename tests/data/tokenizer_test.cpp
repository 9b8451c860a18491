#include "data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "data/bpe_files.h"
#include "data/bpe_tokenizer.h"
#include "data/tokenizer_null.h"
#include "tests/data/tokenizer_test_data.h"

namespace megalith {
namespace {

/// The 256 bytes, then these merges ("left right" in the byte alphabet), then <|endoftext|>.
std::pair<std::string, std::string> small_files(const std::vector<std::string>& merges) {
  std::string vocab = "{";
  int number = 0;
  const ByteAlphabet alphabet;
  for (const std::uint8_t byte : alphabet.order()) {
    const std::string text = alphabet.to_text(std::string(1, static_cast<char>(byte)));
    vocab += format("{}\"{}\": {}", number == 0 ? "" : ", ",
                    text == "\"" || text == "\\" ? "\\" + text : text, number);
    ++number;
  }
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) {
    lines += merge + "\n";
    std::string piece = merge;
    piece.erase(piece.find(' '), 1);
    vocab += format(", \"{}\": {}", piece, number++);
  }
  vocab += format(", \"<|endoftext|>\": {}}}", number);
  return {vocab, lines};
}

BpeTokenizer small_tokenizer(const std::vector<std::string>& merges) {
  const auto [vocab, lines] = small_files(merges);
  return {parse_vocab_and_merges(vocab, lines, "vocab.json", "merges.txt"), CharacterClasses::load()};
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  Pretokenizer(CharacterClasses::load()).for_each_word(text, [&](std::string_view word) {
    words.emplace_back(word);
  });
  return words;
}

TEST(Pretokenizer, CutsAsTheGpt2Pattern) {
  using testing::ElementsAre;
  EXPECT_THAT(words_of("Hello world's end"), ElementsAre("Hello", " world", "'s", " end"));
  EXPECT_THAT(words_of("we'll 'RE they've"), ElementsAre("we", "'ll", " '", "RE", " they", "'ve"));
  EXPECT_THAT(words_of("a  b\n\nc \n d"), ElementsAre("a", " ", " b", "\n", "\n", "c", " \n", " d"));
  EXPECT_THAT(words_of("x   "), ElementsAre("x", "   "));
  EXPECT_THAT(words_of(" 12ab3.5 !?x"), ElementsAre(" 12", "ab", "3", ".", "5", " !?", "x"));
  EXPECT_THAT(words_of("''s 'sx"), ElementsAre("''", "s", " '", "sx"));
  // No-break space is white space but never joins a word; a combining mark is no letter.
  EXPECT_THAT(words_of("a\u00a0b e\u0301x"), ElementsAre("a", "\u00a0", "b", " e", "\u0301", "x"));
  // U+180E has not been white space since Unicode 6.3.
  EXPECT_THAT(words_of("a \u180e b"), ElementsAre("a", " \u180e", " b"));
  EXPECT_THAT(words_of("日本語１２٣x"), ElementsAre("日本語", "１２٣", "x"));
  EXPECT_THAT(words_of("\u3000\u3000日"), ElementsAre("\u3000", "\u3000", "日"));
}

TEST(Pretokenizer, InvalidBytesAreSymbols) {
  using testing::ElementsAre;
  EXPECT_THAT(words_of("a\xff\xfe b"), ElementsAre("a", "\xff\xfe", " b"));
  EXPECT_THAT(words_of("\xc3"), ElementsAre("\xc3"));
  EXPECT_THAT(words_of("ab\xe6\x97x"), ElementsAre("ab", "\xe6\x97", "x"));
  EXPECT_THAT(words_of("\xed\xa0\x80z"), ElementsAre("\xed\xa0\x80", "z"));  // a surrogate
  EXPECT_THAT(words_of("\xc0\xaf\xf5z"),
              ElementsAre("\xc0\xaf\xf5", "z"));  // overlong, beyond the last plane
  EXPECT_THAT(words_of(" \xf4\x90\x80\x80"), ElementsAre(" \xf4\x90\x80\x80"));  // U+110000
}

TEST(BpeMerger, LowestRankFirstThenLeftmost) {
  const BpeTokenizer tokenizer = small_tokenizer({"b c", "a b", "a a", "ab c", "aa aa"});
  const auto pieces = [&](std::string_view text) {
    std::vector<std::string> found;
    for (const Token token : tokenizer.encode(text)) found.push_back(tokenizer.piece(token));
    return found;
  };
  EXPECT_THAT(pieces("abc"), testing::ElementsAre("a", "bc"));
  EXPECT_THAT(pieces("abab"), testing::ElementsAre("ab", "ab"));
  EXPECT_THAT(pieces("aaaaa"), testing::ElementsAre("aaaa", "a"));
  EXPECT_THAT(pieces("aaaab"), testing::ElementsAre("aa", "a", "ab"));
}

TEST(BpeMerger, LongWordsAsShortOnes) {
  // The heap (words over 48 bytes) against the definition, applied literally.
  const BpeTokenizer tokenizer =
      small_tokenizer({"a b", "b c", "ab a", "c c", "aba bc", "cc ab", "a a", "aa aa", "bc bc"});
  const std::vector<BpeMerge>& merges = tokenizer.vocabulary().merges;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string word;
    for (std::size_t length = 1 + random() % 150; length > 0; --length)
      word += static_cast<char>('a' + random() % 3);
    std::vector<Token> expected;
    for (const char byte : word) {
      expected.push_back(tokenizer.vocabulary().byte_tokens[static_cast<unsigned char>(byte)]);
    }
    for (bool merged = true; merged;) {
      merged = false;
      for (std::size_t rank = 0; rank < merges.size() && !merged; ++rank) {
        for (std::size_t i = 0; i + 1 < expected.size() && !merged; ++i) {
          if (expected[i] != merges[rank].left || expected[i + 1] != merges[rank].right) continue;
          expected[i] = merges[rank].result;
          expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          merged = true;
        }
      }
    }
    ASSERT_EQ(tokenizer.encode(word), expected) << word;
    ASSERT_EQ(tokenizer.encode(word), expected) << "from the cache: " << word;
  }
}

TEST(BpeTokenizer, AnyBytesComeBack) {
  const BpeTokenizer tokenizer =
      small_tokenizer({"t h", "th e", "Ġ the", "Ã ©", "æ Ĺ", "æĹ ¥", "Ġ Ġ", "e r"});
  std::mt19937 random(11);
  const std::vector<std::string> parts = {"the",           " ", "é",    "日",      "\n", "'s",
                                          "<|endoftext|>", "7", "\xff", "\xe6\x97"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const std::size_t length = random() % 60;
    while (text.size() < length) {
      if (round % 2 == 0) {
        text += static_cast<char>(random() & 0xffU);
      } else {
        text += parts[random() % parts.size()];
      }
    }
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, round % 3 == 0)), text);
  }
}

TEST(BpeTokenizer, SpecialTokensOnlyOnRequest) {
  const BpeTokenizer tokenizer = small_tokenizer({"t h"});
  const std::string text = "th<|endoftext|>th";
  EXPECT_EQ(tokenizer.eod(), 257);
  EXPECT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_THAT(tokenizer.encode(text, true), testing::ElementsAre(256, 257, 256));
  EXPECT_EQ(tokenizer.encode(text).size(), 15U);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(BpeTokenizer, ManyWordsWithoutASpaceTakeLinearTime) {
  const BpeTokenizer tokenizer = small_tokenizer({"a a", "aa aa", "aaaa aaaa", "Ġ Ġ", "ĠĠ ĠĠ", "' '"});
  for (const std::string& part :
       {std::string("a"), std::string(" "), std::string("'"), std::string("\xe6\x97")}) {
    std::string text;
    while (text.size() < 1000000) text += part;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(BpeTokenizer, ThreadsShareOne) {
  const BpeTokenizer tokenizer = small_tokenizer({"t h", "th e", "Ġ the"});
  std::string text;
  for (int i = 0; i < 5000; ++i) text += format("the {} other ", i);
  const std::vector<Token> expected = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (std::size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) equal[i] += tokenizer.encode(text) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, testing::Each(5));
}

TEST(BpeTokenizer, DecodeRefusesUnknownNumbers) {
  const BpeTokenizer tokenizer = small_tokenizer({"t h"});
  EXPECT_THROW(tokenizer.decode(std::vector<Token>{258}), Error);
  EXPECT_THROW(tokenizer.decode(std::vector<Token>{-1}), Error);
}

TEST(BpeFiles, SavedAndReadTheSame) {
  const auto [vocab, lines] = small_files({"t h", "th e", "Ġ the"});
  const BpeVocabulary first = parse_vocab_and_merges(vocab, lines, "vocab.json", "merges.txt");
  const BpeVocabulary pair =
      parse_vocab_and_merges(vocab_json_text(first), merges_txt_text(first), "vocab.json", "merges.txt");
  const BpeVocabulary json = parse_tokenizer_json(tokenizer_json_text(first), "tokenizer.json");
  EXPECT_EQ(pair.fingerprint(), first.fingerprint());
  EXPECT_EQ(json.fingerprint(), first.fingerprint());
  const auto [other_vocab, other_lines] = small_files({"t h", "th e", "Ġ th"});
  EXPECT_NE(parse_vocab_and_merges(other_vocab, other_lines, "v", "m").fingerprint(), first.fingerprint());
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

TEST(BpeFiles, AddedTokensOfTokenizerJson) {
  const auto [vocab, lines] = small_files({"t h"});
  const std::string plain = tokenizer_json_text(parse_vocab_and_merges(vocab, lines, "v", "m"));
  const std::string entry =
      R"("added_tokens": [{"id": 300, "content": "   ", "special": false, "normalized": true},
    {"id": 301, "content": "  ", "special": false, "normalized": true},
    {"id": 302, "content": "é!", "special": true, "normalized": false},)";
  const BpeTokenizer tokenizer(
      parse_tokenizer_json(changed(plain, R"("added_tokens": [)", entry), "tokenizer.json"),
      CharacterClasses::load());
  EXPECT_EQ(tokenizer.vocab_size(), 303);
  EXPECT_THAT(tokenizer.encode("th     th"), testing::ElementsAre(256, 300, 301, 256));
  EXPECT_THAT(tokenizer.encode("é!th", true), testing::ElementsAre(302, 256));
  EXPECT_EQ(tokenizer.encode("é!th").size(), 4U);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("é!  th", true)), "é!  th");
  EXPECT_THROW(tokenizer.decode(std::vector<Token>{299}), Error);  // a hole
}

TEST(BpeFiles, MergesAsPairs) {
  const auto [vocab, lines] = small_files({"t h"});
  const BpeVocabulary first = parse_vocab_and_merges(vocab, lines, "v", "m");
  const std::string pairs = changed(tokenizer_json_text(first), R"("t h")", R"(["t", "h"])");
  EXPECT_EQ(parse_tokenizer_json(pairs, "tokenizer.json").fingerprint(), first.fingerprint());
}

TEST(BpeFiles, OtherKindsAreRefusedByName) {
  const auto [vocab, lines] = small_files({"t h"});
  const std::string good = tokenizer_json_text(parse_vocab_and_merges(vocab, lines, "v", "m"));
  const std::vector<std::array<std::string, 3>> cases = {
      {R"("normalizer": null)", R"("normalizer": {"type": "NFC"})", "normalizer NFC"},
      {R"("pre_tokenizer": {"type": "ByteLevel")", R"("pre_tokenizer": {"type": "Metaspace")",
       "pre_tokenizer Metaspace"},
      {R"("add_prefix_space": false)", R"("add_prefix_space": true)", "add_prefix_space"},
      {R"("use_regex": true)", R"("use_regex": false)", "use_regex"},
      {R"("type": "BPE")", R"("type": "WordPiece")", "model WordPiece"},
      {R"("dropout": null)", R"("dropout": 0.1)", "dropout"},
      {R"("byte_fallback": false)", R"("byte_fallback": true)", "byte_fallback"},
      {R"("end_of_word_suffix": null)", R"("end_of_word_suffix": "</w>")", "end_of_word_suffix"},
      {R"("lstrip": false)", R"("lstrip": true)", "lstrip"},
      {R"("t h")", R"("t z")", "merge 1 makes 'tz'"},
      {R"("t h")", R"("t h e")", "merge 1 is neither"},
      {R"("!":0)", R"("!":-1)", "not an integer of 0"},
      {R"("!":0)", R"("!":4000000)", "outside 0"},
      {R"("!":0,)", "", "byte 0x21 has no token"},
      {R"("content": "<|endoftext|>")", R"("content": "the")", "two pieces"},
      {R"("model")", R"("modell")", "no 'model'"},
      {R"(])", R"(})", "not valid JSON"},
      {R"("dropout": null)", R"("dropout": 1e999)", "a number that is too large"},
  };
  for (const auto& [from, to, message] : cases) {
    try {
      parse_tokenizer_json(changed(good, from, to), "tokenizer.json");
      ADD_FAILURE() << to << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  }
}

TEST(LoadTokenizer, RefusesWithAReason) {
  const auto message_of = [](const TokenizerOptions& options) -> std::string {
    try {
      load_tokenizer(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message_of({}), testing::HasSubstr("--tokenizer-type"));
  EXPECT_THAT(message_of({.tokenizer_type = "Llama2Tokenizer"}), testing::HasSubstr("does not read yet"));
  EXPECT_THAT(message_of({.tokenizer_type = "GPT2"}), testing::HasSubstr("'GPT2' is unknown"));
  EXPECT_THAT(message_of({.tokenizer_type = "GPT2BPETokenizer", .vocab_file = "x"}),
              testing::HasSubstr("--merge-file is not given"));
  EXPECT_THAT(message_of({.tokenizer_type = "HuggingFaceTokenizer"}),
              testing::HasSubstr("--tokenizer-model"));
  EXPECT_THAT(message_of({.tokenizer_type = "NullTokenizer"}), testing::HasSubstr("--vocab-size"));
}

TEST(NullTokenizer, NumbersInDecimal) {
  const auto tokenizer = load_tokenizer({.tokenizer_type = "NullTokenizer", .vocab_size = 100});
  EXPECT_THAT(tokenizer->encode(" 1 2\n99"), testing::ElementsAre(1, 2, 99));
  EXPECT_EQ(tokenizer->decode(std::vector<Token>{1, 2, 99}), "1 2 99");
  EXPECT_THROW(tokenizer->encode("100"), Error);
  EXPECT_THROW(tokenizer->encode("1 x"), Error);
}

std::vector<std::string> split_text(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + separator.size()) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

TEST(Gpt2Files, KnownTokens) {
  const std::filesystem::path data = tokenizer_test_data();
  if (data.empty()) GTEST_SKIP() << "needs the test data; set MEGALITH_TEST_DATA";
  const std::filesystem::path folder = data / "tokenizers/gpt2";
  const auto pair = load_tokenizer({.tokenizer_type = "GPT2BPETokenizer",
                                    .vocab_file = folder / "vocab.json",
                                    .merge_file = folder / "merges.txt"});
  const auto json = load_tokenizer({.tokenizer_type = "HuggingFaceTokenizer", .tokenizer_model = folder});
  EXPECT_EQ(pair->fingerprint(), json->fingerprint());
  EXPECT_EQ(pair->eod(), 50256);
  EXPECT_EQ(pair->vocab_size(), 50257);
  const std::vector<std::string> texts =
      split_text(read_file(data / "tokenizers/expected/gpt-2.inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> answers =
      split_text(read_file(data / "tokenizers/expected/gpt-2.out"), "\n");
  ASSERT_GT(texts.size(), 40U);
  ASSERT_GE(answers.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // The last text ends with the file's newline, which is not part of it.
    const std::string text =
        i + 1 < texts.size() ? texts[i] : texts[i].substr(0, texts[i].find_last_not_of('\n') + 1);
    std::istringstream line(answers[i]);
    const std::vector<Token> expected(std::istream_iterator<Token>(line), {});
    EXPECT_EQ(pair->encode(text), expected) << text;
    EXPECT_EQ(json->encode(text), expected) << text;
    EXPECT_EQ(pair->decode(expected), text);
  }
  EXPECT_THROW(load_tokenizer({.tokenizer_type = "HuggingFaceTokenizer",
                               .tokenizer_model = data / "tokenizers/gpt-neox"}),
               Error);
}

}  // namespace
}  // namespace megalith
