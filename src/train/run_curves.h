// Curves of training runs over one another: reads metrics.jsonl files and lays out the chart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/drawing.h"

namespace megalith {

struct RunCurve {
  std::string name;
  std::vector<Point> training;    ///< x and the metric
  std::vector<Point> validation;  ///< x and the validation loss; only beside lm_loss
};

struct CurveOptions {
  std::string metric = "lm_loss";    ///< any number of metrics.jsonl
  std::string x_axis = "iteration";  ///< iteration or consumed_samples
  bool log_x = false;
  bool log_y = false;
  std::string title;
};

/// Reads RUN/metrics.jsonl, or RUN itself where it is a file. Raises Error (input) that names file and line
/// where it is damaged, or where it holds no value of the metric.
RunCurve read_run_curve(const std::filesystem::path& run, const CurveOptions& options);

/// Axes with round ticks, one colour a run; training as a thin line (thinned to the picture's width),
/// validation as a thick one with discs, a legend with the last value.
Drawing draw_curves(const std::vector<RunCurve>& curves, const CurveOptions& options);

/// Round tick values that cover [low, high], about `count` of them.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace megalith
