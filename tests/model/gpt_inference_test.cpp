#include "model/gpt_inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tests/model/support/tiny_gpt.h"

namespace megalith {
namespace {

using testing::logits_of;
using testing::open_device;
using testing::tiny_config;
using testing::TinyGpt;

using Tokens = std::vector<std::vector<std::int32_t>>;

class Generation : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    device_ = open_device(GetParam());
    config_ = tiny_config();
    if (!device_->supports(DType::float64)) config_.compute = DType::float32;
    gpt_ = std::make_unique<TinyGpt>(*device_, config_, 2);
    // Logits of the training path, [20, padded vocabulary].
    gpt_->stage.forward(0, gpt_->batches.load(0, 1.0), Pass::evaluation);
    logits_ = logits_of(*device_, config_, gpt_->store, gpt_->stage);
  }

  std::vector<std::int32_t> tokens(std::int64_t sample, std::size_t first, std::size_t end) const {
    const std::vector<std::int32_t> ids = gpt_->batches.tokens_of(sample);
    return {ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  // Whether the last token of `sequence` is its `position`-th and has the training path's logits.
  void expect_logits(const GptInference& inference, std::int64_t sequence, std::int64_t position) const {
    for (std::int64_t v = 0; v < config_.vocabulary; ++v) {
      const double expected = logits_[static_cast<std::size_t>(
          (sequence * config_.sequence + position) * config_.padded_vocabulary + v)];
      const double actual = inference.logits()[static_cast<std::size_t>(sequence * config_.vocabulary + v)];
      ASSERT_NEAR(actual, expected, 2e-5 * std::max(1.0, std::abs(expected)))
          << "sequence " << sequence << " position " << position << " token " << v;
    }
  }

  std::unique_ptr<Device> device_;
  GptConfig config_;
  std::unique_ptr<TinyGpt> gpt_;
  std::vector<double> logits_;
};

TEST_P(Generation, CacheGivesTheLogitsOfAWholePass) {
  GptInference inference(*device_, config_, gpt_->store, {2, 10, 10});
  inference.step(Tokens{tokens(0, 0, 4), tokens(1, 0, 7)});
  expect_logits(inference, 0, 3);
  expect_logits(inference, 1, 6);
  for (std::size_t i = 4; i < 7; ++i) {
    inference.step(Tokens{tokens(0, i, i + 1), tokens(1, i + 3, i + 4)});
    expect_logits(inference, 0, static_cast<std::int64_t>(i));
    expect_logits(inference, 1, static_cast<std::int64_t>(i + 3));
  }
  EXPECT_EQ(inference.length(0), 7);
  EXPECT_EQ(inference.length(1), 10);
}

TEST_P(Generation, LongPromptsComeInChunks) {
  GptInference inference(*device_, config_, gpt_->store, {2, 10, 3});
  inference.step(Tokens{tokens(0, 0, 10), tokens(1, 0, 2)});
  expect_logits(inference, 0, 9);
  expect_logits(inference, 1, 1);
}

TEST_P(Generation, SequencesMayPauseAndGoBack) {
  GptInference inference(*device_, config_, gpt_->store, {2, 10, 10});
  inference.step(Tokens{tokens(0, 0, 5), {}});
  expect_logits(inference, 0, 4);
  inference.step(Tokens{{}, tokens(1, 0, 3)});
  expect_logits(inference, 0, 4);
  expect_logits(inference, 1, 2);
  inference.truncate(0, 2);
  inference.step(Tokens{tokens(0, 2, 4), {}});
  expect_logits(inference, 0, 3);
  inference.reset();
  inference.step(Tokens{tokens(0, 0, 1), tokens(1, 0, 1)});
  expect_logits(inference, 0, 0);
  expect_logits(inference, 1, 0);
}

TEST_P(Generation, RefusesTooManyTokensAndUnknownOnes) {
  GptInference inference(*device_, config_, gpt_->store, {2, 6, 6});
  EXPECT_THROW(inference.step(Tokens{tokens(0, 0, 7), {}}), Error);
  EXPECT_THROW(inference.step(Tokens{{37}, {}}), Error);
  EXPECT_THROW(inference.step(Tokens{{-1}, {}}), Error);
  EXPECT_EQ(inference.length(0), 0);
  EXPECT_THROW(GptInference(*device_, config_, gpt_->store, {2, 13, 6}), Error);
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceStatus& status : list_devices()) {
    if (status.available) names.push_back(status.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Devices, Generation, ::testing::ValuesIn(device_names()));

}  // namespace
}  // namespace megalith
