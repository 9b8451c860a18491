#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace megalith {
namespace {

std::vector<int> counts(const SamplingOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options);
  std::vector<int> found(logits.size());
  for (int i = 0; i < draws; ++i)
    ++found[static_cast<std::size_t>(sampler.choose(logits, 3, static_cast<std::uint64_t>(i)))];
  return found;
}

TEST(Sampler, GreedyTakesTheFirstOfTheBest) {
  Sampler sampler({0.0});
  EXPECT_EQ(sampler.choose(std::vector<float>{1, 5, 5, 2}, 0, 0), 1);
  Sampler top_one({1.0, 1});
  EXPECT_EQ(top_one.choose(std::vector<float>{1, 5, 5, 2}, 0, 0), 1);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits{0.0F, 1.0F, 2.0F};
  constexpr int draws = 30000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::vector<int> found = counts({temperature}, logits, draws);
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected = std::exp(logits[i] / temperature) / total;
      EXPECT_NEAR(found[i] / static_cast<double>(draws), expected, 5 * std::sqrt(expected / draws))
          << temperature;
    }
  }
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  const std::vector<int> two = counts({1.0, 2}, logits, 2000);
  EXPECT_GT(two[0], 0);
  EXPECT_GT(two[1], 0);
  EXPECT_EQ(two[2] + two[3], 0);
  const std::vector<int> nucleus = counts({1.0, 0, 0.75}, logits, 2000);
  EXPECT_GT(nucleus[1], 0);
  EXPECT_EQ(nucleus[2] + nucleus[3], 0);
  const std::vector<int> tiny = counts({1.0, 0, 1e-9}, logits, 100);
  EXPECT_EQ(tiny[0], 100);
}

// Against sorting: every token of the set is drawn, and no other.
TEST(Sampler, KeepsTheSetThatSortingGives) {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(static_cast<float>(i * 37 % 50) / 10.0F);  // many ties
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const auto check = [&](const SamplingOptions& options, std::size_t kept) {
    const std::vector<int> found = counts(options, logits, 10000);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(found[order[i]] > 0, i < kept) << "rank " << i << " of " << kept;
    }
  };
  for (const std::size_t k : {2, 5, 33, 57}) check({1.0, static_cast<std::int64_t>(k)}, k);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit);
  for (const double p : {0.03, 0.35, 0.8}) {
    double sum = 0;
    std::size_t kept = 0;
    while (sum < p * total) sum += std::exp(logits[order[kept++]]);
    check({1.0, 0, p}, kept);
  }
}

TEST(Sampler, TheLowestTemperatureIsGreedy) {
  const std::vector<int> found = counts({5e-324}, {1.0F, 1.00001F, -1.0F}, 100);
  EXPECT_EQ(found[1], 100);
}

TEST(Sampler, SameSeedSameChoices) {
  const std::vector<float> logits(50, 0.0F);
  Sampler first({1.0, 0, 1.0, 9});
  Sampler second({1.0, 0, 1.0, 9});
  Sampler other({1.0, 0, 1.0, 10});
  int differences = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Token token = first.choose(logits, 1, i);
    EXPECT_EQ(token, second.choose(logits, 1, i));
    differences += token != other.choose(logits, 1, i) ? 1 : 0;
  }
  EXPECT_GT(differences, 50);
}

TEST(Sampler, RefusesWhatIsNotFinite) {
  Sampler sampler({});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THROW(sampler.choose(std::vector<float>{0.0F, std::nanf("")}, 0, 0), Error);
  EXPECT_THROW(sampler.choose(std::vector<float>{std::nanf(""), 1.0F}, 0, 0), Error);
  EXPECT_THROW(sampler.choose(std::vector<float>{-infinity, -infinity}, 0, 0), Error);
  EXPECT_THROW(sampler.choose(std::vector<float>{infinity, 0}, 0, 0), Error);
}

}  // namespace
}  // namespace megalith
