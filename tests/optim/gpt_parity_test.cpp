// Ten steps of small GPTs against stored values of an outside implementation. They were made by
//   /usr/bin/python3 tests/parity/gpt_oracle.py expected tests/parity/gpt_expected.json
// which also holds the settings of each run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/parity/gpt_run.h"

namespace megalith {
namespace {

using nlohmann::json;

json expected_runs() {
  std::ifstream file(std::string(MEGALITH_SOURCE_DIR) + "/tests/parity/gpt_expected.json");
  return json::parse(file).at("scenarios");
}

// {largest, Euclidean norm, first, middle, last}
std::vector<double> summary(const std::vector<double>& values) {
  double largest = 0.0;
  double squares = 0.0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
    squares += value * value;
  }
  return {largest, std::sqrt(squares), values.front(), values[values.size() / 2], values.back()};
}

std::string layer_of(const std::string& name) {
  const std::size_t layers = name.find("decoder.layers.");
  return layers == std::string::npos ? name : name.substr(0, name.find('.', layers + 15));
}

void expect_near(const std::vector<double>& actual, const json& expected, double scale,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i].get<double>(), 1e-10 * scale) << what << " " << i;
  }
}

TEST(GptParity, StoredRunsOfAnOutsideImplementation) {
  const json runs = expected_runs();
  ASSERT_GE(runs.size(), 5U);
  for (const auto& [title, run] : runs.items()) {
    SCOPED_TRACE(title);
    testing::RunSettings settings;
    for (const auto& [name, value] : run.at("settings").items()) settings[name] = value.get<std::string>();
    const auto device = testing::open_device("reference");
    const auto record = testing::record_run(*device, settings);
    const auto& losses = record.at("loss").values;
    expect_near(losses, run.at("loss"), 1.0, "loss");
    expect_near(record.at("norm").values, run.at("norm"), 1.0, "norm");
    expect_near(record.at("losses").values, run.at("losses"), 1.0, "losses");
    const std::vector<double>& logits = record.at("logits").values;
    const auto columns = static_cast<std::ptrdiff_t>(run.at("logits").size());
    expect_near({logits.end() - columns, logits.end()}, run.at("logits"), 1.0, "last row of logits");

    const json& tensors = run.at("tensors");
    std::map<std::string, double> layer_largest;
    for (const auto& [name, expected] : tensors.items()) {
      double& largest = layer_largest[layer_of(name)];
      largest = std::max(largest, expected[0].get<double>());
    }
    const double rate = run.at("lr").get<double>();
    for (const auto& [name, expected] : tensors.items()) {
      double scale = std::max(expected[1].get<double>(), 1e-3 * layer_largest[layer_of(name)]);
      const bool adamw_weight = name.rfind("final/", 0) == 0 && settings.at("optimizer") == "adamw";
      if (adamw_weight) scale = rate;
      // AdamW divides the rounding noise of the keys' biases (gradient zero in exact arithmetic) by epsilon.
      if (adamw_weight && name.find("linear_qkv.bias") != std::string::npos) scale = 1e3 * rate;
      expect_near(summary(record.at(name).values), expected, scale, name);
    }
  }
}

// The comparison must notice a slightly different optimizer.
TEST(GptParity, NoticesAWrongSetting) {
  const json run = expected_runs().at("adamw");
  const auto device = testing::open_device("reference");
  const auto record = testing::record_run(*device, {{"optimizer", "adamw"}, {"weight_decay", "0.0101"}});
  const double expected = run.at("loss").back().get<double>();
  EXPECT_GT(std::abs(record.at("loss").values.back() - expected), 1e-9);
}

}  // namespace
}  // namespace megalith
