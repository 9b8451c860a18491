#include "train/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

IterationMetrics row(std::int64_t iteration) {
  IterationMetrics metrics;
  metrics.iteration = iteration;
  metrics.lm_loss = 0.1;
  metrics.learning_rate = 1e-300;
  return metrics;
}

TEST(MetricsLog, NumbersSurviveTheRoundTrip) {
  IterationMetrics metrics = row(3);
  for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 2.0, -0.0}) {
    metrics.grad_norm = value;
    EXPECT_EQ(nlohmann::json::parse(metrics_json(metrics))["grad_norm"].get<double>(), value);
  }
  metrics.grad_norm = std::nan("");
  metrics.validation_loss = std::numeric_limits<double>::infinity();
  const nlohmann::json parsed = nlohmann::json::parse(metrics_json(metrics));
  EXPECT_TRUE(parsed["grad_norm"].is_null());
  EXPECT_TRUE(parsed["validation_loss"].is_null());
  EXPECT_EQ(parsed.size(), 10U);
}

TEST(MetricsLog, AResumedRunCutsBack) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "metrics.jsonl";
  {
    MetricsLog log(path, 0);
    for (std::int64_t i = 1; i <= 5; ++i) log.append(row(i));
  }
  write_file_atomically(path, read_file(path) + "{\"iteration\":6,\"consu");
  {
    MetricsLog log(path, 3);
    log.append(row(4));
  }
  std::string expected;
  for (std::int64_t i = 1; i <= 4; ++i) expected += metrics_json(row(i)) + "\n";
  EXPECT_EQ(read_file(path), expected);
}

}  // namespace
}  // namespace megalith
