#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/bpe_files.h"
#include "data/bpe_tokenizer.h"
#include "data/bpe_trainer.h"
#include "data/tokenizer_training_text.h"
#include "tests/data/support/dataset_files.h"

namespace megalith {
namespace {

const Pretokenizer& words() {
  static const Pretokenizer pretokenizer(CharacterClasses::load());
  return pretokenizer;
}

/// The text of the stored vectors below.
std::string fable() {
  std::string text;
  for (int i = 1; i <= 40; ++i) {
    text += format(
        "The tortoise isn't as quick as the hare, but in race {} the tortoise wins; the hare's asleep.\n", i);
    if (i % 3 == 0) text += "La tortue était là — 亀は兎に勝った!  \n\n";
  }
  return text;
}

BpeVocabulary learned(std::string_view text, std::int64_t vocab_size, std::int64_t min_frequency) {
  WordTable table;
  count_words(words(), text, table);
  BpeTrainingOptions options;
  options.vocab_size = vocab_size;
  options.min_frequency = min_frequency;
  check_training_options(options, words());
  return train_bpe(table, options, [](std::int64_t) {});
}

std::vector<std::string> merges_of(const BpeVocabulary& vocabulary) {
  std::vector<std::string> merges;
  for (const BpeMerge& merge : vocabulary.merges) {
    merges.push_back(vocabulary.pieces[static_cast<std::size_t>(merge.left)] + "|" +
                     vocabulary.pieces[static_cast<std::size_t>(merge.right)]);
  }
  return merges;
}

TEST(BpeTrainer, MostFrequentPairFirstThenSmallerNumbers) {
  // b a: 3; a b: 2; c d: 2, and (a b) has the smaller numbers.
  EXPECT_THAT(merges_of(learned("cd!cd!ba!ba!ba!ab!ab", 260, 0)), testing::ElementsAre("b|a", "a|b", "c|d"));
  // Runs: "aaaa" twice, pairs counted with overlap, merged from the left.
  EXPECT_THAT(merges_of(learned("aaaa!aaaa", 260, 0)), testing::ElementsAre("a|a", "aa|aa"));
  EXPECT_THAT(merges_of(learned("ab!cd!cd", 300, 2)), testing::ElementsAre("c|d"));
}

TEST(BpeTrainer, NumbersBytesMergesSpecialTokens) {
  const BpeVocabulary vocabulary = learned(fable(), 320, 0);
  EXPECT_EQ(vocabulary.pieces.size(), 320U);
  EXPECT_EQ(vocabulary.pieces[0], "!");
  EXPECT_EQ(vocabulary.pieces[255], "\xad");
  EXPECT_EQ(vocabulary.pieces[319], "<|endoftext|>");
  EXPECT_EQ(vocabulary.eod, 319);
  EXPECT_EQ(parse_tokenizer_json(tokenizer_json_text(vocabulary), "t").fingerprint(),
            vocabulary.fingerprint());
  EXPECT_EQ(parse_vocab_and_merges(vocab_json_text(vocabulary), merges_txt_text(vocabulary), "v", "m")
                .fingerprint(),
            vocabulary.fingerprint());
}

// Expected values: tests/parity/tokenizer_vectors.py prints them (tokenizers 0.23.3, its BpeTrainer and
// encode).
const std::vector<std::string> stored_merges = {
#include "tests/data/tokenizer_vector_merges.inc"
};
const std::vector<Token> stored_tokens = {
#include "tests/data/tokenizer_vector_tokens.inc"
};

TEST(BpeTrainer, StoredVectors) {
  const BpeVocabulary vocabulary = learned(fable(), 320, 0);
  EXPECT_EQ(merges_of(vocabulary), stored_merges);
  const BpeTokenizer tokenizer(vocabulary, CharacterClasses::load());
  EXPECT_EQ(tokenizer.encode("The hare's race: 亀 wins,  the tortue isn't là."), stored_tokens);
}

TEST(BpeTrainer, BadOptionsAreRefused) {
  const auto message_of = [](std::int64_t vocab_size, std::vector<std::string> special) -> std::string {
    BpeTrainingOptions options;
    options.vocab_size = vocab_size;
    options.special_tokens = std::move(special);
    try {
      check_training_options(options, words());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message_of(256, {}), testing::HasSubstr("257 ..."));
  EXPECT_THAT(message_of(257, {"<|a|>", "<|b|>"}), testing::HasSubstr("258 ..."));
  EXPECT_THAT(message_of(300, {"<|a|>", "<|a|>"}), testing::HasSubstr("given twice"));
  EXPECT_THAT(message_of(300, {""}), testing::HasSubstr("empty"));
  EXPECT_THAT(message_of(300, {"<|\xff|>"}), testing::HasSubstr("not UTF-8"));
  EXPECT_THAT(message_of(300, {" the"}), testing::HasSubstr("a word"));
  EXPECT_EQ(message_of(258, {"<|a|>", "<|b|>"}), "accepted");
}

TEST(TrainingText, CutsKeepWords) {
  const std::string text = fable() + "x \n\ny\n\n\nz" + fable();
  WordTable whole;
  count_words(words(), text, whole);
  for (const std::size_t bytes : {1U, 7U, 100U, 1000U, 1000000U}) {
    WordTable parts;
    std::size_t begin = 0;
    for (const std::size_t end : safe_cuts(text, bytes)) {
      count_words(words(), std::string_view(text).substr(begin, end - begin), parts);
      begin = end;
    }
    EXPECT_EQ(begin, text.size());
    ASSERT_EQ(parts.entries().size(), whole.entries().size());
    for (std::size_t i = 0; i < whole.entries().size(); ++i) {
      EXPECT_EQ(parts.entries()[i].word, whole.entries()[i].word);
      EXPECT_EQ(parts.entries()[i].count, whole.entries()[i].count);
    }
  }
}

TEST(TrainingText, SameMergesOnAnyNumberOfThreads) {
  const test::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += format("{{\"text\": \"{} the hare and the tortoise{}\"}}\n", i, i % 7);
  test::spill(folder.path() / "a.jsonl", lines);
  test::spill(folder.path() / "b.txt", fable());
  TrainingText text;
  text.files = {(folder.path() / "a.jsonl").string(), (folder.path() / "b.txt").string()};
  text.keys = {"text"};
  std::vector<std::string> prints;
  for (const int threads : {1, 4}) {
    ThreadTeam team(threads);
    const WordTable table = count_words_of_files(text, words(), team, [](const TrainingTextProgress&) {});
    BpeTrainingOptions options;
    options.vocab_size = 400;
    prints.push_back(train_bpe(table, options, [](std::int64_t) {}).fingerprint());
  }
  EXPECT_EQ(prints[0], prints[1]);
}

}  // namespace
}  // namespace megalith
