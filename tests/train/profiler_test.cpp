// The table that sums a profile up, from spans made by hand.
#include "train/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace megalith {
namespace {

using testing::HasSubstr;

TraceSpan span(std::string name, int track, int depth, double begin_ms, double end_ms) {
  TraceSpan made;
  made.name = std::move(name);
  made.track = track;
  made.depth = depth;
  made.begin_ns = static_cast<std::int64_t>(begin_ms * 1e6);
  made.end_ns = static_cast<std::int64_t>(end_ms * 1e6);
  return made;
}

TEST(ProfileTable, SharesAreOfTheIterationWithoutEvaluationAndSaving) {
  std::vector<TraceSpan> spans{
      span("data", 0, 1, 0, 1),         span("matmul", 1, 0, 2, 6),     span("layer 0", 0, 2, 2, 8),
      span("forward", 0, 1, 1, 9),      span("logging", 0, 1, 9, 10),   span("matmul", 1, 0, 11, 29),
      span("evaluation", 0, 1, 10, 30), span("iteration", 0, 0, 0, 30), span("matmul", 1, 0, 31, 32)};
  spans[1].flops = 8e9;
  const std::string table = profile_table(spans);
  EXPECT_THAT(table, HasSubstr("profile of 1 iteration: 10.0 ms a step"));
  EXPECT_THAT(table, testing::ContainsRegex("forward +1 x +8.000 ms +80.00 %"));
  EXPECT_THAT(table, testing::ContainsRegex("  matmul +1 x +4.000 ms +40.00 % +2000.0 GFLOP/s"));
  EXPECT_THAT(table, testing::ContainsRegex("  outside kernels +1 x +4.000 ms +40.00 %"));
  EXPECT_THAT(table, testing::ContainsRegex("evaluation +1 x +20.000 ms"));
  EXPECT_THAT(table, HasSubstr("data, logging and metrics: 20.000 % of a step"));
}

TEST(ProfileTable, TakesMeansOverIterations) {
  const std::vector<TraceSpan> spans{
      span("fill", 1, 0, 0, 1),   span("zero gradients", 0, 1, 0, 2),   span("iteration", 0, 0, 0, 10),
      span("fill", 1, 0, 10, 13), span("zero gradients", 0, 1, 10, 14), span("iteration", 0, 0, 10, 20)};
  const std::string table = profile_table(spans);
  EXPECT_THAT(table, HasSubstr("profile of 2 iterations: 10.0 ms a step"));
  EXPECT_THAT(table, testing::ContainsRegex("  fill +1 x +2.000 ms +20.00 %"));
}

TEST(ProfileTable, NothingRecordedIsNoDivisionByZero) {
  EXPECT_THAT(profile_table({}), HasSubstr("0.000 % of a step"));
}

}  // namespace
}  // namespace megalith
