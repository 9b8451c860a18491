// The order of samples against vectors made by Megatron-Core and numpy (tests/parity/dataset_vectors.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/blending.h"
#include "data/dataset.h"
#include "data/legacy_random.h"
#include "tests/data/support/dataset_files.h"

namespace megalith {
namespace {

using nlohmann::json;
using test::TemporaryFolder;

json read_json(std::string_view name) {
  return json::parse(test::slurp(test::vector_file(name)));
}

template <typename T>
std::uint64_t digest(const std::vector<T>& values, std::uint64_t state = 0) {
  for (const T value : values) {
    state = state * 6364136223846793005U + static_cast<std::uint64_t>(value) + 1;
  }
  return state;
}

TEST(LegacyRandom, ShufflesAsNumpyDoes) {
  const json vectors = read_json("numpy.json");
  for (const json& expected : vectors.at("shuffles")) {
    LegacyRandom random(expected.at("seed").get<std::uint32_t>());
    for (const std::string name : {"first", "second"}) {
      std::vector<std::uint32_t> values(expected.at("count").get<std::size_t>());
      std::iota(values.begin(), values.end(), 0U);
      random.shuffle(std::span<std::uint32_t>(values));
      EXPECT_EQ(std::to_string(digest(values)), expected.at(name + "_digest").get<std::string>());
    }
  }
}

TEST(LegacyRandom, WideIntervalsTakeTwoDrawsUpperHalfFirst) {
  LegacyRandom wide(5);
  LegacyRandom narrow(5);
  const std::uint64_t largest = (std::uint64_t{1} << 40) - 1;
  const std::uint64_t upper = narrow.interval(0xffffffffU);
  const std::uint64_t lower = narrow.interval(0xffffffffU);
  EXPECT_EQ(wide.interval(largest), ((upper << 32) | lower) & largest);
}

TEST(Blending, SumsAsNumpyDoes) {
  const json vectors = read_json("numpy.json");
  for (const json& expected : vectors.at("sums")) {
    std::vector<double> values;
    for (const json& value : expected.at("values")) {
      values.push_back(std::strtod(value.get<std::string>().c_str(), nullptr));
    }
    EXPECT_EQ(pairwise_sum(values), std::strtod(expected.at("sum").get<std::string>().c_str(), nullptr));
  }
}

class SampleOrder : public testing::Test {
 protected:
  void SetUp() override {
    vectors_ = read_json("sample_order.json");
    for (const auto& [name, documents] : vectors_.at("corpora").items()) {
      test::write_dataset(folder_ / name, documents.get<test::Documents>());
    }
  }

  std::vector<std::string> paths(const json& value) const {
    std::vector<std::string> result;
    for (const json& item : value) {
      std::string text = item.get<std::string>();
      if (const auto mark = text.find("{P}"); mark != std::string::npos)
        text.replace(mark, 3, folder_.path().string());
      result.push_back(text);
    }
    return result;
  }

  DatasetOptions options(const json& entry) const {
    DatasetOptions result;
    if (!entry.at("data_path").is_null()) result.data_path = paths(entry.at("data_path"));
    if (entry.contains("train_data_path")) result.train_data_path = paths(entry.at("train_data_path"));
    if (entry.contains("valid_data_path")) result.valid_data_path = paths(entry.at("valid_data_path"));
    if (entry.contains("test_data_path")) result.test_data_path = paths(entry.at("test_data_path"));
    if (!entry.at("split").is_null()) result.split = entry.at("split").get<std::string>();
    result.seq_length = entry.at("seq_length").get<std::int64_t>();
    result.seed = entry.at("seed").get<std::uint64_t>();
    result.train_samples = entry.at("samples").at(0).get<std::int64_t>();
    result.valid_samples = entry.at("samples").at(1).get<std::int64_t>();
    result.test_samples = entry.at("samples").at(2).get<std::int64_t>();
    return result;
  }

  void expect_equal(const json& entry, const DatasetOptions& settings) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    test::RecordingLog recording;
    const DatasetSplits splits = build_datasets(settings, recording.log());
    const std::pair<const char*, const SampleSource*> sets[] = {
        {"train", splits.train.get()}, {"valid", splits.valid.get()}, {"test", splits.test.get()}};
    for (const auto& [name, source] : sets) {
      SCOPED_TRACE(name);
      const bool expected = entry.at("sets").contains(name);
      ASSERT_EQ(source != nullptr, expected);
      if (!expected) continue;
      const json& set = entry.at("sets").at(name);
      ASSERT_EQ(source->size(), set.at("size").get<std::int64_t>());
      std::uint64_t state = 0;
      std::vector<Token> tokens(static_cast<std::size_t>(settings.seq_length) + 1);
      for (std::int64_t i = 0; i < source->size(); ++i) {
        source->read(i, tokens);
        state = digest(tokens, state);
      }
      EXPECT_EQ(std::to_string(state), set.at("digest").get<std::string>());
    }
  }

  json vectors_;
  TemporaryFolder folder_;
};

TEST_F(SampleOrder, IsMegatronCoresOnEveryCase) {
  ASSERT_GE(vectors_.at("cases").size(), 40U);
  for (const json& entry : vectors_.at("cases")) expect_equal(entry, options(entry));
}

TEST_F(SampleOrder, IsTheSameFromTheCache) {
  for (const json& entry : vectors_.at("cases")) {
    DatasetOptions settings = options(entry);
    settings.data_cache_path = folder_ / "cache";
    expect_equal(entry, settings);
    expect_equal(entry, settings);
  }
}

TEST_F(SampleOrder, SurvivesADamagedCache) {
  const json& entry = vectors_.at("cases").at(2);
  DatasetOptions settings = options(entry);
  settings.data_cache_path = folder_ / "cache";
  expect_equal(entry, settings);
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(settings.data_cache_path)) {
    std::string content = test::slurp(file.path());
    for (std::size_t i = 0; i < content.size(); i += 37) {
      std::string changed = content;
      changed[i] = static_cast<char>(changed[i] ^ 0x40);
      test::spill(file.path(), changed);
      if (i % 5 == 0) test::spill(file.path(), content.substr(0, i));
      expect_equal(entry, settings);
    }
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

}  // namespace
}  // namespace megalith
