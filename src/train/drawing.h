// Drawing: a list of lines, rectangles and texts, written as SVG or PNG. Both come from this one list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

/// Where a text's anchor point lies on it.
enum class TextAlign : std::uint8_t { left, middle, right };

struct Stroke {
  std::vector<Point> points;
  Colour colour;
  double width = 1;
  double opacity = 1;
};

struct Label {
  Point at;  ///< baseline
  std::string text;
  Colour colour;
  double size = 12;  ///< height of a line in pixels
  TextAlign align = TextAlign::left;
  bool upward = false;  ///< turned by 90 degrees, reading from bottom to top
};

struct Disc {
  Point centre;
  double radius = 3;
  Colour colour;
};

/// Pixels, origin at the upper left, white ground. Strokes are drawn first, then discs, then labels.
struct Drawing {
  int width = 0;
  int height = 0;
  std::vector<Stroke> strokes;
  std::vector<Disc> discs;
  std::vector<Label> labels;
};

std::string to_svg(const Drawing& drawing);

/// A PNG file's bytes, `scale` device pixels per pixel. Raises Error (environment) in builds without zlib.
std::string to_png(const Drawing& drawing, double scale = 2);

/// The strokes of a text in units of its size: x to the right, y down, baseline at y = 0. Characters that the
/// built-in font lacks become a box.
std::vector<std::vector<Point>> text_strokes(std::string_view text);
/// Width of the text in units of its size.
double text_width(std::string_view text);

}  // namespace megalith
