#include "train/run_curves.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "tests/support/temporary_folder.h"

namespace megalith {
namespace {

TEST(RunCurves, ReadsMetricsAndSkipsTheHalfLineAtTheEnd) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "metrics.jsonl",
                        "{\"iteration\":1,\"lm_loss\":3.0,\"validation_loss\":null}\n{\"iteration\":2,\"lm_"
                        "loss\":2.0,\"validation_loss\":2.5}\n{\"iter");
  const RunCurve curve = read_run_curve(folder.path(), {});
  ASSERT_EQ(curve.training.size(), 2U);
  ASSERT_EQ(curve.validation.size(), 1U);
  EXPECT_EQ(curve.validation[0].y, 2.5);
  CurveOptions other;
  other.metric = "grad_norm";
  EXPECT_THROW(read_run_curve(folder.path(), other), Error);
}

TEST(RunCurves, NamesTheDamagedLine) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "metrics.jsonl",
                        "{\"iteration\":1,\"lm_loss\":3.0}\nnonsense\n{\"iteration\":3}\n");
  try {
    read_run_curve(folder.path(), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2"), std::string::npos) << error.what();
  }
}

TEST(RunCurves, TicksAreRoundAndInside) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  for (const double tick : axis_ticks(0.0123, 0.0178, 6)) {
    EXPECT_GE(tick, 0.0123);
    EXPECT_LE(tick, 0.0178);
  }
}

TEST(RunCurves, PicturesOfAwkwardDataAreWhole) {
  const RunCurve flat{"flat", {{1, 2}, {2, 2}}, {}};
  const RunCurve single{"one & <only>", {{5, 1}}, {{5, 1.5}}};
  for (const bool log_axes : {false, true}) {
    CurveOptions options;
    options.log_x = log_axes;
    options.log_y = log_axes;
    const Drawing drawing = draw_curves({flat, single}, options);
    const std::string svg = to_svg(drawing);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_NE(svg.find("one &amp; &lt;only&gt;"), std::string::npos);
  }
}

TEST(RunCurves, EveryPrintableCharacterHasAShape) {
  for (char character = '!'; character <= '~'; ++character) {
    const auto strokes = text_strokes(std::string(1, character));
    ASSERT_FALSE(strokes.empty()) << character;
    for (const auto& stroke : strokes) EXPECT_GE(stroke.size(), 2U) << character;
  }
}

}  // namespace
}  // namespace megalith
