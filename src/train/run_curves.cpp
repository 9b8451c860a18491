#include "train/run_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/files.h"

namespace megalith {
namespace {

constexpr int picture_width = 900;
constexpr int picture_height = 540;
constexpr double left_edge = 96;
constexpr double right_edge = picture_width - 30;
constexpr double top_edge = 60;
constexpr double bottom_edge = picture_height - 70;
constexpr Colour ink{40, 40, 40};
constexpr Colour faint{222, 222, 222};
// Distinguishable with colour-blind eyes (Okabe and Ito 2008).
constexpr std::array<Colour, 7> palette{{{0, 114, 178},
                                         {213, 94, 0},
                                         {0, 158, 115},
                                         {204, 121, 167},
                                         {230, 159, 0},
                                         {86, 180, 233},
                                         {110, 110, 110}}};

std::string tick_text(double value, double step) {
  if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-3)) return format("{:.3g}", value);
  int decimals = 0;
  for (double unit = std::abs(step); unit < 0.999 && decimals < 6; unit *= 10) ++decimals;
  return format("{:.{}f}", value, decimals);
}

// Beyond these, differences and quotients of values leave the range of a double; no run has such numbers.
constexpr double largest_shown = 1e100;
constexpr double smallest_shown_logarithm = 1e-100;

bool is_shown(double value, bool logarithmic) {
  return std::abs(value) <= largest_shown && (!logarithmic || value >= smallest_shown_logarithm);
}

// Maps values to pixels along one axis.
struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  double start = 0;
  double end = 1;

  double place(double value) const {
    const double a = logarithmic ? std::log10(low) : low;
    const double b = logarithmic ? std::log10(high) : high;
    const double v = logarithmic ? std::log10(value) : value;
    return start + (v - a) / (b - a) * (end - start);
  }
};

std::vector<double> ticks_of(const Axis& axis, int count) {
  if (!axis.logarithmic) return axis_ticks(axis.low, axis.high, count);
  std::vector<double> ticks;
  const bool few = std::log10(axis.high / axis.low) < 2;
  for (int power = static_cast<int>(std::floor(std::log10(axis.low)));
       power <= std::ceil(std::log10(axis.high)); ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10.0, power);
      if ((digit == 1.0 || few) && value >= axis.low && value <= axis.high) ticks.push_back(value);
    }
  }
  return ticks;
}

Axis fit_axis(const std::vector<RunCurve>& curves, double Point::* coordinate, bool logarithmic) {
  Axis axis;
  axis.logarithmic = logarithmic;
  axis.low = std::numeric_limits<double>::infinity();
  axis.high = -axis.low;
  for (const RunCurve& curve : curves) {
    for (const std::vector<Point>* points : {&curve.training, &curve.validation}) {
      for (const Point& point : *points) {
        const double value = point.*coordinate;
        if (!is_shown(value, logarithmic)) continue;
        axis.low = std::min(axis.low, value);
        axis.high = std::max(axis.high, value);
      }
    }
  }
  if (!std::isfinite(axis.low)) {
    axis.low = logarithmic ? 1 : 0;
    axis.high = logarithmic ? 10 : 1;
  }
  if (axis.high - axis.low <= std::abs(axis.high) * 1e-12) {
    const double margin = axis.high == 0 ? 1.0 : std::abs(axis.high) * 0.1;
    axis.low -= margin;
    axis.high += margin;
  }
  return axis;
}

// At most two points a pixel column: the lowest and the highest, so that spikes stay visible.
std::vector<Point> thinned(std::vector<Point> points) {
  constexpr std::size_t limit = 2 * picture_width;
  if (points.size() <= limit) return points;
  std::vector<Point> kept;
  const std::size_t group = points.size() / (limit / 2) + 1;
  for (std::size_t start = 0; start < points.size(); start += group) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(start);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), start + group));
    auto [low, high] =
        std::minmax_element(first, last, [](const Point& a, const Point& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

std::vector<Point> to_pixels(const std::vector<Point>& points, const Axis& x, const Axis& y) {
  std::vector<Point> pixels;
  for (const Point& point : points) {
    if (!is_shown(point.x, x.logarithmic) || !is_shown(point.y, y.logarithmic)) continue;
    pixels.push_back({x.place(point.x), y.place(point.y)});
  }
  return thinned(std::move(pixels));
}

void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const CurveOptions& options) {
  const std::vector<double> columns = ticks_of(x, 8);
  for (const double value : columns) {
    const double at = x.place(value);
    drawing.strokes.push_back({{{at, top_edge}, {at, bottom_edge}}, faint, 1, 1});
    const double step = columns.size() > 1 && !x.logarithmic ? columns[1] - columns[0] : value;
    drawing.labels.push_back({{at, bottom_edge + 20}, tick_text(value, step), ink, 12, TextAlign::middle});
  }
  const std::vector<double> rows = ticks_of(y, 7);
  for (const double value : rows) {
    const double at = y.place(value);
    drawing.strokes.push_back({{{left_edge, at}, {right_edge, at}}, faint, 1, 1});
    const double step = rows.size() > 1 && !y.logarithmic ? rows[1] - rows[0] : value;
    drawing.labels.push_back({{left_edge - 8, at + 4}, tick_text(value, step), ink, 12, TextAlign::right});
  }
  drawing.strokes.push_back(
      {{{left_edge, top_edge}, {left_edge, bottom_edge}, {right_edge, bottom_edge}}, ink, 1.2, 1});
  const std::string unit = options.metric == "lm_loss" ? " (nats per token)" : "";
  drawing.labels.push_back(
      {{(left_edge + right_edge) / 2, bottom_edge + 46}, options.x_axis, ink, 14, TextAlign::middle});
  drawing.labels.push_back(
      {{20, (top_edge + bottom_edge) / 2}, options.metric + unit, ink, 14, TextAlign::middle, true});
  constexpr double title_size = 17;
  const double title_width = text_width(options.title) * title_size;
  const double shrink = std::min(1.0, (right_edge - left_edge) / std::max(1.0, title_width));
  drawing.labels.push_back({{left_edge, 32}, options.title, ink, title_size * shrink, TextAlign::left});
}

std::string legend_text(const RunCurve& curve) {
  std::string text = curve.name.empty() ? "run" : curve.name;
  if (!curve.training.empty()) text += format(": {:.4g}", curve.training.back().y);
  if (!curve.validation.empty()) {
    text += format("{} validation (bold) {:.4g}", curve.training.empty() ? ":" : " (pale),",
                   curve.validation.back().y);
  }
  return text;
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  const double raw = (high - low) / std::max(1, count);
  // Too narrow or too wide for round steps between the ends.
  if (!(raw > 1e-300 && raw < 1e300 && std::abs(low) < raw * 1e15)) return {low, high};
  const double unit = std::pow(10.0, std::floor(std::log10(raw)));
  double step = unit * 10;
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * unit >= raw) {
      step = digit * unit;
      break;
    }
  }
  std::vector<double> ticks;
  for (auto i = static_cast<std::int64_t>(std::ceil(low / step - 1e-9));
       static_cast<double>(i) * step <= high + step * 1e-9; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
  }
  return ticks;
}

RunCurve read_run_curve(const std::filesystem::path& run, const CurveOptions& options) {
  std::error_code code;
  const bool is_folder = std::filesystem::is_directory(run, code);
  const std::filesystem::path path = is_folder ? run / "metrics.jsonl" : run;
  const std::string text = read_file(path);
  RunCurve curve;
  const std::filesystem::path named = is_folder ? run : run.parent_path();
  curve.name = named.lexically_normal().filename().string();
  if (curve.name.empty()) curve.name = named.lexically_normal().parent_path().filename().string();
  std::size_t number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    const bool is_half_line = end == text.size();
    start = end + 1;
    ++number;
    if (line.empty()) continue;
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains(options.x_axis) || !row[options.x_axis].is_number()) {
      // A run that is being written, or was killed, may end in half a line.
      if (is_half_line) break;
      fail(ErrorKind::input, format("{}:{}", path.string(), number),
           "is no metrics object with a number \"{}\"", options.x_axis);
    }
    const double x = row[options.x_axis].get<double>();
    if (row.contains(options.metric) && row[options.metric].is_number()) {
      curve.training.push_back({x, row[options.metric].get<double>()});
    }
    if (options.metric == "lm_loss" && row.contains("validation_loss") &&
        row["validation_loss"].is_number()) {
      curve.validation.push_back({x, row["validation_loss"].get<double>()});
    }
  }
  if (curve.training.empty() && curve.validation.empty()) {
    fail(ErrorKind::input, path.string(),
         "holds no value of \"{}\"; metrics: lm_loss, validation_loss, grad_norm, learning_rate, "
         "global_batch_size, elapsed_ms, tokens_per_second, tflops_per_device",
         options.metric);
  }
  return curve;
}

Drawing draw_curves(const std::vector<RunCurve>& curves, const CurveOptions& options) {
  Drawing drawing;
  drawing.width = picture_width;
  drawing.height = picture_height;
  Axis x = fit_axis(curves, &Point::x, options.log_x);
  Axis y = fit_axis(curves, &Point::y, options.log_y);
  x.start = left_edge;
  x.end = right_edge;
  y.start = bottom_edge - 8;
  y.end = top_edge + 8;
  draw_axes(drawing, x, y, options);
  double legend_row = top_edge + 22;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Colour colour = palette[i % palette.size()];
    const RunCurve& curve = curves[i];
    const bool has_validation = !curve.validation.empty();
    drawing.strokes.push_back({to_pixels(curve.training, x, y), colour, 1.3, has_validation ? 0.45 : 1.0});
    const std::vector<Point> training = to_pixels(curve.training, x, y);
    if (training.size() == 1) drawing.discs.push_back({training.front(), 2.5, colour});
    const std::vector<Point> marks = to_pixels(curve.validation, x, y);
    drawing.strokes.push_back({marks, colour, 2.2, 1});
    if (marks.size() <= 60) {
      for (const Point& mark : marks) drawing.discs.push_back({mark, 3.2, colour});
    }
    const std::string legend = legend_text(curve);
    const double width = text_width(legend) * 13;
    drawing.strokes.push_back(
        {{{right_edge - width - 44, legend_row - 4}, {right_edge - width - 18, legend_row - 4}},
         colour,
         3,
         1});
    drawing.labels.push_back({{right_edge - width - 10, legend_row}, legend, ink, 13, TextAlign::left});
    legend_row += 20;
  }
  return drawing;
}

}  // namespace megalith
