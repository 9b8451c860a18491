#include "data/indexed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/data/support/dataset_files.h"

namespace megalith {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// Header and arrays as given, whatever they say.
struct RawIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t dtype = 8;
  std::uint64_t sequences = 2;
  std::uint64_t entries = 3;
  std::vector<std::int32_t> lengths{3, 2};
  std::vector<std::int64_t> offsets{0, 6};
  std::vector<std::int64_t> documents{0, 1, 2};
  std::string tail;

  std::string bytes() const {
    std::string text = magic;
    const auto put = [&](const auto& value) {
      text.append(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    put(version);
    put(dtype);
    put(sequences);
    put(entries);
    for (const auto value : lengths) put(value);
    for (const auto value : offsets) put(value);
    for (const auto value : documents) put(value);
    return text + tail;
  }
};

class IndexedDatasetTest : public testing::Test {
 protected:
  std::string write(const RawIndex& index, std::size_t bin_bytes = 10) {
    const std::string prefix = folder_ / "raw";
    test::spill(prefix + ".idx", index.bytes());
    test::spill(prefix + ".bin", std::string(bin_bytes, '\1'));
    return prefix;
  }
  TemporaryFolder folder_;
};

TEST_F(IndexedDatasetTest, WritesTheSameBytesAsMegatronCore) {
  const auto vectors = nlohmann::json::parse(test::slurp(test::vector_file("sample_order.json")));
  for (const std::string name : {"empty_documents", "many_sequences"}) {
    test::write_dataset(folder_ / name, vectors.at("corpora").at(name).get<test::Documents>());
    for (const std::string suffix : {".bin", ".idx"}) {
      EXPECT_EQ(test::slurp(folder_ / (name + suffix)), test::slurp(test::vector_file(name + suffix)))
          << name << suffix;
    }
  }
}

TEST_F(IndexedDatasetTest, ReadsBackEveryStorage) {
  for (const TokenStorage storage : {TokenStorage::uint8, TokenStorage::int8, TokenStorage::int16,
                                     TokenStorage::int32, TokenStorage::int64, TokenStorage::uint16}) {
    const std::string prefix = folder_ / name_of(storage);
    const std::vector<Token> tokens{0, 1, 127, 3};
    IndexedDatasetBuilder builder(prefix, storage, true);
    builder.add_sequence(tokens, 5);
    builder.add_sequence({}, -1);
    builder.end_document();
    builder.end_document();
    builder.add_sequence(std::span(tokens).first(2));
    builder.end_document();
    EXPECT_FALSE(std::filesystem::exists(prefix + ".bin"));
    EXPECT_FALSE(std::filesystem::exists(prefix + ".idx"));
    builder.finish();
    const IndexedDataset dataset(prefix + ".idx");
    EXPECT_EQ(dataset.storage(), storage);
    EXPECT_EQ(dataset.sequences(), 3);
    EXPECT_EQ(dataset.documents(), 3);
    EXPECT_EQ(dataset.read(0), tokens);
    EXPECT_TRUE(dataset.read(1).empty());
    EXPECT_EQ(dataset.read(2), (std::vector<Token>{0, 1}));
    EXPECT_TRUE(dataset.has_modes());
    EXPECT_EQ(dataset.mode(0), 5);
    EXPECT_EQ(dataset.mode(1), -1);
    std::vector<Token> part(2);
    dataset.read(0, 2, part);
    EXPECT_EQ(part, (std::vector<Token>{127, 3}));
    EXPECT_TRUE(dataset.verify(128).problems.empty());
  }
}

TEST_F(IndexedDatasetTest, AnEmptyDatasetIsWhole) {
  IndexedDatasetBuilder(folder_ / "empty", TokenStorage::uint16).finish();
  const IndexedDataset dataset(folder_ / "empty");
  EXPECT_EQ(dataset.sequences(), 0);
  EXPECT_EQ(dataset.documents(), 0);
  EXPECT_TRUE(dataset.verify(10).problems.empty());
}

TEST_F(IndexedDatasetTest, ABuilderThatDoesNotFinishLeavesNothingAndKeepsTheOld) {
  test::write_dataset(folder_ / "data", {{{1, 2, 3}}});
  const std::string before = test::slurp(folder_ / "data.bin");
  {
    IndexedDatasetBuilder builder(folder_ / "data", TokenStorage::uint16);
    builder.add_sequence(std::vector<Token>{9, 9});
  }
  EXPECT_EQ(test::slurp(folder_ / "data.bin"), before);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++files;
  EXPECT_EQ(files, 2U);
}

TEST_F(IndexedDatasetTest, TokensThatDoNotFitAreRefused) {
  IndexedDatasetBuilder builder(folder_ / "data", TokenStorage::uint16);
  EXPECT_THAT(error_of([&] { builder.add_sequence(std::vector<Token>{65536}); }), HasSubstr("65536"));
  EXPECT_THAT(error_of([&] { builder.add_sequence(std::vector<Token>{-1}); }), HasSubstr("uint16"));
}

TEST_F(IndexedDatasetTest, StorageFollowsTheVocabulary) {
  EXPECT_EQ(storage_for_vocabulary(50257), TokenStorage::uint16);
  EXPECT_EQ(storage_for_vocabulary(65499), TokenStorage::uint16);
  EXPECT_EQ(storage_for_vocabulary(65500), TokenStorage::int32);
}

TEST_F(IndexedDatasetTest, DamagedHeadersAreRefusedWithTheirPlace) {
  const auto refused = [&](const RawIndex& index) {
    const std::string prefix = write(index);
    const std::string message = error_of([&] { IndexedDataset dataset(prefix); });
    EXPECT_THAT(message, HasSubstr(prefix + ".idx"));
    return message;
  };
  {
    RawIndex raw;
    raw.magic[3] = 'x';
    EXPECT_THAT(refused(raw), HasSubstr("MMIDIDX"));
  }
  {
    RawIndex raw;
    raw.version = 2;
    EXPECT_THAT(refused(raw), HasSubstr("version 2"));
  }
  {
    RawIndex raw;
    raw.dtype = 0;
    EXPECT_THAT(refused(raw), HasSubstr("dtype code 0"));
  }
  {
    RawIndex raw;
    raw.dtype = 7;
    EXPECT_THAT(refused(raw), HasSubstr("floating-point"));
  }
  {
    RawIndex raw;
    raw.dtype = 9;
    EXPECT_THAT(refused(raw), HasSubstr("dtype code 9"));
  }
  {
    RawIndex raw;
    raw.sequences = ~std::uint64_t{0};
    EXPECT_THAT(refused(raw), HasSubstr("announces"));
  }
  {
    RawIndex raw;
    raw.sequences = (std::uint64_t{1} << 62) + 2;
    EXPECT_THAT(refused(raw), HasSubstr("announces"));
  }
  {
    RawIndex raw;
    raw.entries = (std::uint64_t{1} << 61) + 3;
    EXPECT_THAT(refused(raw), HasSubstr("announces"));
  }
  {
    RawIndex raw;
    raw.entries = 0;
    EXPECT_THAT(refused(raw), HasSubstr("empty document index"));
  }
  {
    RawIndex raw;
    raw.tail.push_back('x');
    EXPECT_THAT(refused(raw), HasSubstr("1 bytes after"));
  }
  const std::string whole = RawIndex().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::spill(folder_ / "raw.idx", whole.substr(0, size));
    error_of([&] { IndexedDataset dataset(folder_ / "raw"); });
  }
  EXPECT_THAT(error_of([&] { IndexedDataset dataset(folder_ / "missing"); }), HasSubstr("missing.idx"));
}

TEST_F(IndexedDatasetTest, DamagedArraysAreFoundOnReadAndByVerify) {
  const auto check = [&](const RawIndex& index, std::int64_t sequence, const std::string& part,
                         std::size_t bin = 10) {
    const IndexedDataset dataset(write(index, bin));
    if (sequence >= 0) {
      EXPECT_THAT(error_of([&] { dataset.read(sequence); }), HasSubstr(part));
    }
    const IndexedDatasetReport report = dataset.verify(0);
    EXPECT_GE(report.problem_count, 1U);
    EXPECT_THAT(report.problems, testing::Contains(HasSubstr(part)));
  };
  {
    RawIndex raw;
    raw.lengths[1] = -1;
    check(raw, 1, "negative length -1");
  }
  {
    RawIndex raw;
    raw.lengths[1] = 0x7fffffff;
    check(raw, 1, "outside of the .bin file");
  }
  {
    RawIndex raw;
    raw.offsets[0] = -2;
    check(raw, 0, "outside of the .bin file");
  }
  {
    RawIndex raw;
    raw.offsets[1] = 8;
    check(raw, 1, "outside of the .bin file");
  }
  {
    RawIndex raw;
    raw.offsets[1] = INT64_MAX;
    check(raw, 1, "outside of the .bin file");
  }
  {
    RawIndex raw;
    check(raw, 1, "outside of the .bin file", 9);
  }
  {
    RawIndex raw;
    check(raw, -1, "12 bytes long", 12);
  }
  {
    RawIndex raw;
    raw.documents = {1, 1, 2};
    check(raw, -1, "begins with 1");
  }
  {
    RawIndex raw;
    raw.documents = {0, 5, 2};
    check(raw, -1, "entry 1 is 5");
  }
  {
    RawIndex raw;
    raw.documents = {0, 1, 1};
    check(raw, -1, "ends at sequence 1");
  }
}

TEST_F(IndexedDatasetTest, TokensBeyondTheVocabularyAreNamed) {
  test::write_dataset(folder_ / "data", {{{1, 2, 3}}, {{4, 50, 6}}});
  const IndexedDataset dataset(folder_ / "data");
  EXPECT_EQ(dataset.read(1, 51)[1], 50);
  const std::string message = error_of([&] { dataset.read(1, 50); });
  EXPECT_THAT(message, HasSubstr("data.bin"));
  EXPECT_THAT(message, HasSubstr("token 1 of sequence 1 is 50"));
  const IndexedDatasetReport report = dataset.verify(50);
  EXPECT_EQ(report.problem_count, 1U);
  EXPECT_EQ(report.largest_token, 50);
  EXPECT_EQ(report.tokens, 6);
}

TEST_F(IndexedDatasetTest, OffsetsNeedNotBePacked) {
  RawIndex raw;
  raw.offsets = {4, 0};
  const IndexedDataset dataset(write(raw));
  EXPECT_EQ(dataset.read(1).size(), 2U);
  const IndexedDatasetReport report = dataset.verify(0);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.notes.size(), 1U);
}

TEST_F(IndexedDatasetTest, ReadsFilesOfMegatronDeepSpeed) {
  const char* set = std::getenv("MEGALITH_TEST_DATA");
  const std::filesystem::path data =
      set != nullptr ? std::filesystem::path(set)
                     : std::filesystem::path(MEGALITH_SOURCE_DIR) / ".." / "shared" / "data";
  const auto folder = data / "megatron";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder << "; set MEGALITH_TEST_DATA";
  const IndexedDataset text((folder / "meg-gpt2-openwebtext_text_document").string());
  EXPECT_EQ(text.storage(), TokenStorage::uint16);
  EXPECT_EQ(text.documents(), 1000);
  const IndexedDatasetReport report = text.verify(5000);
  EXPECT_THAT(report.problems, testing::IsEmpty());
  EXPECT_EQ(report.tokens, 1361845);
  for (const std::string name : {"ag_news_prompt_inputs_document", "ag_news_prompt_targets_document"}) {
    const IndexedDataset prompts((folder / name).string());
    EXPECT_EQ(prompts.storage(), TokenStorage::int32);
    EXPECT_EQ(prompts.sequences(), 100);
    EXPECT_THAT(prompts.verify(0).problems, testing::IsEmpty());
  }
}

}  // namespace
}  // namespace megalith
