#include "data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/indexed_dataset.h"
#include "tests/data/support/dataset_files.h"

namespace megalith {
namespace {

using testing::HasSubstr;

/// A token a byte; 256 ends a document.
class ByteTokenizer : public Tokenizer {
 public:
  std::vector<Token> encode(std::string_view text, bool /*parse_special*/) const override {
    if (text.find("explode") != std::string_view::npos) fail(ErrorKind::input, "tokenizer", "exploded");
    std::vector<Token> tokens;
    for (const char letter : text) tokens.push_back(static_cast<unsigned char>(letter));
    return tokens;
  }
  std::string decode(std::span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) text += token == 256 ? '|' : static_cast<char>(token);
    return text;
  }
  std::int64_t vocab_size() const override { return 257; }
  Token eod() const override { return 256; }
  std::string piece(Token token) const override { return std::to_string(token); }
  std::string fingerprint() const override { return "bytes"; }
};

class PrepareTest : public testing::Test {
 protected:
  PrepareOptions options(const std::string& content, const std::string& name = "in.jsonl") {
    test::spill(folder_ / name, content);
    PrepareOptions result;
    result.files = {folder_ / name};
    result.output_prefix = folder_ / "out";
    result.append_eod = true;
    result.workers = 3;
    return result;
  }
  PrepareProgress prepare(const PrepareOptions& settings) {
    PrepareProgress progress;
    EXPECT_TRUE(prepare_dataset(settings, tokenizer_, [](const PrepareProgress&) { return true; }, progress));
    return progress;
  }
  std::vector<std::string> documents(const std::string& key = "text") {
    const IndexedDataset dataset(prepared_name(folder_ / "out", key));
    EXPECT_TRUE(dataset.verify(257).problems.empty());
    std::vector<std::string> result;
    for (std::int64_t d = 0; d < dataset.documents(); ++d) {
      std::string text;
      for (std::int64_t s = dataset.document_start(d); s < dataset.document_start(d + 1); ++s) {
        text += "[" + tokenizer_.decode(dataset.read(s)) + "]";
      }
      result.push_back(text);
    }
    return result;
  }
  std::size_t files_in_folder() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++count;
    return count;
  }

  test::TemporaryFolder folder_;
  ByteTokenizer tokenizer_;
};

TEST_F(PrepareTest, DocumentsAndSequencesAreUpstreams) {
  PrepareOptions settings = options(
      "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": [\"c\", \"\", \"de\"]}\n{\"text\": []}\n{\"text\": "
      "\"f\"}\n");
  const PrepareProgress progress = prepare(settings);
  EXPECT_THAT(documents(), testing::ElementsAre("[ab|]", "", "[c][de|]", "", "[f|]"));
  EXPECT_EQ(progress.documents, 5);
  EXPECT_EQ(progress.empty_documents, 2);
  EXPECT_EQ(progress.tokens, 9);
  EXPECT_EQ(progress.read_bytes, progress.total_bytes);
  settings.append_eod = false;
  prepare(settings);
  EXPECT_THAT(documents(), testing::ElementsAre("[ab]", "", "[c][de]", "", "[f]"));
}

TEST_F(PrepareTest, EachKeyGetsItsFiles) {
  PrepareOptions settings = options("{\"a\": \"1\", \"b\": \"2\"}\n");
  settings.keys = {"a", "b"};
  prepare(settings);
  EXPECT_THAT(documents("a"), testing::ElementsAre("[1|]"));
  EXPECT_THAT(documents("b"), testing::ElementsAre("[2|]"));
}

TEST_F(PrepareTest, OrderIsKeptWhateverTheThreads) {
  std::string content;
  for (int i = 0; i < 20000; ++i) {
    content +=
        format("{{\"text\": \"{}{}\"}}\n", i, std::string(static_cast<std::size_t>(i * 7919 % 50), 'x'));
  }
  PrepareOptions settings = options(content);
  settings.workers = 1;
  prepare(settings);
  const std::string bin = test::slurp(folder_ / "out_text_document.bin");
  const std::string idx = test::slurp(folder_ / "out_text_document.idx");
  EXPECT_EQ(documents().size(), 20000U);
  for (const int workers : {2, 7}) {
    settings.workers = workers;
    settings.reading.batch_bytes = 1000;
    prepare(settings);
    EXPECT_EQ(test::slurp(folder_ / "out_text_document.bin"), bin);
    EXPECT_EQ(test::slurp(folder_ / "out_text_document.idx"), idx);
  }
}

TEST_F(PrepareTest, TheFirstFaultInTheTextIsReportedAndNothingIsLeft) {
  std::string content;
  for (int i = 0; i < 5000; ++i) content += "{\"text\": \"fine\"}\n";
  content += "{\"text\": broken}\n";
  for (int i = 0; i < 5000; ++i) content += "{\"text\": \"explode\"}\n";
  PrepareOptions settings = options(content);
  settings.reading.batch_bytes = 500;
  PrepareProgress progress;
  try {
    prepare_dataset(settings, tokenizer_, [](const PrepareProgress&) { return true; }, progress);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("in.jsonl:5001:"));
  }
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(PrepareTest, AnInterruptLeavesNothing) {
  std::string content;
  for (int i = 0; i < 5000; ++i) content += "{\"text\": \"fine\"}\n";
  PrepareOptions settings = options(content);
  settings.reading.batch_bytes = 500;
  int reports = 0;
  PrepareProgress progress;
  EXPECT_FALSE(prepare_dataset(
      settings, tokenizer_, [&](const PrepareProgress&) { return ++reports < 10; }, progress));
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(PrepareTest, PlainTextGoesIn) {
  PrepareOptions settings = options("one\n\ntwo\n", "in.txt");
  settings.reading.sample_by = SampleBy::paragraph;
  prepare(settings);
  EXPECT_THAT(documents(), testing::ElementsAre("[one|]", "[two|]"));
}

}  // namespace
}  // namespace megalith
