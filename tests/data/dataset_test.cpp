#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/error.h"
#include "data/blending.h"
#include "tests/data/support/dataset_files.h"

namespace megalith {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

class DatasetTest : public testing::Test {
 protected:
  DatasetOptions options(std::vector<std::string> data_path) const {
    DatasetOptions result;
    result.data_path = std::move(data_path);
    result.split = "1,0,0";
    result.seq_length = 8;
    result.train_samples = 4;
    return result;
  }
  std::string refusal(const DatasetOptions& settings, ErrorKind kind) {
    try {
      build_datasets(settings, log_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  /// `count` documents of `length` tokens, numbered through.
  std::string make(const std::string& name, int count, int length) {
    test::Documents documents;
    Token next = 0;
    for (int d = 0; d < count; ++d) {
      documents.push_back({{}});
      for (int i = 0; i < length; ++i) documents.back()[0].push_back(next++);
    }
    test::write_dataset(folder_ / name, documents);
    return folder_ / name;
  }

  TemporaryFolder folder_;
  test::RecordingLog recording_;
  Log& log_ = recording_.log();
};

TEST_F(DatasetTest, DataShorterThanASampleIsRefused) {
  EXPECT_THAT(refusal(options({make("short", 2, 4)}), ErrorKind::input),
              testing::AllOf(HasSubstr("8 tokens"), HasSubstr("one sample of 9"), HasSubstr("short")));
}

TEST_F(DatasetTest, ANeededSetThatTheSplitLeavesEmptyIsRefused) {
  DatasetOptions settings = options({make("few", 3, 100)});
  settings.split = "969,30,1";
  settings.valid_samples = 2;
  EXPECT_THAT(refusal(settings, ErrorKind::input), testing::AllOf(HasSubstr("valid"), HasSubstr("969,30,1")));
  settings.split = "0,1,0";
  EXPECT_THAT(refusal(settings, ErrorKind::usage), HasSubstr("training"));
}

TEST_F(DatasetTest, AnEmptyTestSetIsOnlyAWarning) {
  DatasetOptions settings = options({make("few", 3, 100)});
  settings.split = "969,30,1";
  settings.test_samples = 2;
  const DatasetSplits splits = build_datasets(settings, log_);
  EXPECT_NE(splits.train, nullptr);
  EXPECT_EQ(splits.test, nullptr);
  EXPECT_THAT(recording_.said(), HasSubstr("no test set"));
}

TEST_F(DatasetTest, BadBlendsAreRefused) {
  const std::string a = make("a", 3, 100);
  const std::string b = make("b", 3, 100);
  EXPECT_THAT(refusal(options({"0", a, "1", b}), ErrorKind::usage), HasSubstr("weight 0"));
  EXPECT_THAT(refusal(options({"-1", a, "1", b}), ErrorKind::usage), HasSubstr("weight -1"));
  EXPECT_THAT(refusal(options({"nan", a, "1", b}), ErrorKind::usage), HasSubstr("nan"));
  EXPECT_THAT(refusal(options({"1", a, b, "1"}), ErrorKind::usage), HasSubstr("alternate"));
  EXPECT_THAT(refusal(options({"1", a, "2"}), ErrorKind::usage), HasSubstr("alternate"));
  EXPECT_THAT(refusal(options({}), ErrorKind::usage), HasSubstr("data prepare"));
  EXPECT_THAT(refusal(options({folder_ / "missing"}), ErrorKind::input), HasSubstr("missing.idx"));
  DatasetOptions both = options({a});
  both.train_data_path = {b};
  EXPECT_THAT(refusal(both, ErrorKind::usage), HasSubstr("excludes"));
}

TEST_F(DatasetTest, BadSplitsAreRefused) {
  for (const std::string text : {"", "a", "1,,1", "1,2,3,4", "-1,2", "0,0,0", "1 2"}) {
    DatasetOptions settings = options({make("a", 3, 100)});
    settings.split = text;
    EXPECT_THAT(refusal(settings, ErrorKind::usage), HasSubstr("--split")) << text;
  }
}

TEST_F(DatasetTest, TooManyEpochsAreRefusedBeforeMemoryIsTaken) {
  DatasetOptions settings = options({make("a", 1000, 1)});
  settings.train_samples = std::int64_t{1} << 45;
  EXPECT_THAT(refusal(settings, ErrorKind::input), HasSubstr("epochs"));
  settings.train_samples = INT64_MAX / 2;
  EXPECT_THAT(refusal(settings, ErrorKind::usage), HasSubstr("64 bits"));
}

TEST_F(DatasetTest, TokensBeyondTheVocabularyAreRefusedOnRead) {
  DatasetOptions settings = options({make("a", 10, 10)});
  settings.vocab_size = 99;
  settings.train_samples = 12;
  const DatasetSplits splits = build_datasets(settings, log_);
  std::vector<Token> tokens(9);
  std::string message;
  for (std::int64_t i = 0; i < splits.train->size(); ++i) {
    try {
      splits.train->read(i, tokens);
    } catch (const Error& error) {
      message = error.what();
    }
  }
  EXPECT_THAT(message, testing::AllOf(HasSubstr("a.bin"), HasSubstr("is 99"), HasSubstr("vocabulary of 99")));
}

TEST_F(DatasetTest, OneEpochUsesEveryTokenOnce) {
  DatasetOptions settings = options({make("a", 50, 10)});
  settings.train_samples = 62;
  const DatasetSplits splits = build_datasets(settings, log_);
  ASSERT_EQ(splits.train->size(), 62);
  std::multiset<Token> seen;
  std::vector<Token> tokens(9);
  for (std::int64_t i = 0; i < 62; ++i) {
    splits.train->read(i, tokens);
    seen.insert(tokens.begin(), tokens.end() - 1);
  }
  EXPECT_EQ(seen.size(), 62U * 8);
  EXPECT_EQ(std::set<Token>(seen.begin(), seen.end()).size(), 62U * 8);
}

TEST_F(DatasetTest, ABlendFollowsItsWeights) {
  DatasetOptions settings = options({"3", make("a", 50, 10), "1", make("b", 50, 10)});
  settings.train_samples = 1000;
  const DatasetSplits splits = build_datasets(settings, log_);
  EXPECT_EQ(splits.train->size(), 1000);
  const std::vector<std::uint16_t> order = blend_order(std::vector<double>{0.75, 0.25}, 1000);
  EXPECT_EQ(std::count(order.begin(), order.end(), 0), 750);
}

TEST_F(DatasetTest, MockDataIsRepeatableAndWithinTheVocabulary) {
  DatasetOptions settings = options({});
  settings.mock_data = true;
  EXPECT_THAT(refusal(settings, ErrorKind::usage), HasSubstr("vocabulary"));
  settings.vocab_size = 10;
  settings.valid_samples = 3;
  const DatasetSplits one = build_datasets(settings, log_);
  const DatasetSplits two = build_datasets(settings, log_);
  std::vector<Token> first(9);
  std::vector<Token> second(9);
  std::set<Token> seen;
  for (std::int64_t i = 0; i < one.train->size(); ++i) {
    one.train->read(i, first);
    two.train->read(i, second);
    EXPECT_EQ(first, second);
    seen.insert(first.begin(), first.end());
  }
  EXPECT_EQ(*seen.rbegin(), 9);
  one.valid->read(0, first);
  one.train->read(0, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(one.test, nullptr);
}

TEST_F(DatasetTest, AReadOnlyCacheFolderIsOnlyANote) {
  DatasetOptions settings = options({make("a", 10, 10)});
  test::spill(folder_ / "file", "not a folder");
  settings.data_cache_path = folder_ / "file";
  EXPECT_NE(build_datasets(settings, log_).train, nullptr);
  EXPECT_THAT(recording_.said(), HasSubstr("not cached"));
}

}  // namespace
}  // namespace megalith
