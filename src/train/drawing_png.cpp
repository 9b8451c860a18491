// Draws with distance-based antialiasing and packs the pixels as PNG (RFC 2083).
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "train/drawing.h"
#include "train/png_compress.h"

namespace megalith {
namespace {

class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width),
        height_(height),
        pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 255) {}

  // A line with round ends. Each pixel is covered by how far it lies inside the outline.
  void line(Point a, Point b, double width, const Colour& colour, double opacity) {
    const double reach = width / 2 + 1;
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double length_squared = dx * dx + dy * dy;
    const int top = clamp_row(std::min(a.y, b.y) - reach);
    const int bottom = clamp_row(std::max(a.y, b.y) + reach);
    for (int y = top; y <= bottom; ++y) {
      const int left = clamp_column(std::min(a.x, b.x) - reach);
      const int right = clamp_column(std::max(a.x, b.x) + reach);
      for (int x = left; x <= right; ++x) {
        const double px = x + 0.5 - a.x;
        const double py = y + 0.5 - a.y;
        const double along =
            length_squared > 0 ? std::clamp((px * dx + py * dy) / length_squared, 0.0, 1.0) : 0.0;
        const double distance = std::hypot(px - along * dx, py - along * dy);
        blend(x, y, colour, opacity * std::clamp(width / 2 + 0.5 - distance, 0.0, 1.0));
      }
    }
  }

  std::string rows() const {
    std::string bytes;
    bytes.reserve(pixels_.size() + static_cast<std::size_t>(height_));
    const std::size_t stride = static_cast<std::size_t>(width_) * 3;
    for (int y = 0; y < height_; ++y) {
      bytes.push_back(0);  // no filter
      bytes.append(reinterpret_cast<const char*>(pixels_.data()) + static_cast<std::size_t>(y) * stride,
                   stride);
    }
    return bytes;
  }

 private:
  int clamp_row(double y) const { return std::clamp(static_cast<int>(std::floor(y)), 0, height_ - 1); }
  int clamp_column(double x) const { return std::clamp(static_cast<int>(std::floor(x)), 0, width_ - 1); }

  void blend(int x, int y, const Colour& colour, double cover) {
    if (cover <= 0) return;
    std::uint8_t* pixel =
        pixels_.data() +
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)) * 3;
    const auto mix = [cover](std::uint8_t under, std::uint8_t over) {
      return static_cast<std::uint8_t>(std::lround(under + (over - under) * cover));
    };
    pixel[0] = mix(pixel[0], colour.red);
    pixel[1] = mix(pixel[1], colour.green);
    pixel[2] = mix(pixel[2], colour.blue);
  }

  int width_;
  int height_;
  std::vector<std::uint8_t> pixels_;
};

void draw_label(Canvas& canvas, const Label& label, double scale) {
  const double width = text_width(label.text) * label.size;
  const double shift = label.align == TextAlign::left     ? 0
                       : label.align == TextAlign::middle ? -width / 2
                                                          : -width;
  const auto place = [&](const Point& point) {
    const double along = shift + point.x * label.size;
    const double across = point.y * label.size;
    if (label.upward) return Point{(label.at.x + across) * scale, (label.at.y - along) * scale};
    return Point{(label.at.x + along) * scale, (label.at.y + across) * scale};
  };
  for (const std::vector<Point>& stroke : text_strokes(label.text)) {
    for (std::size_t i = 1; i < stroke.size(); ++i) {
      canvas.line(place(stroke[i - 1]), place(stroke[i]), std::max(1.0, label.size * scale / 11),
                  label.colour, 1);
    }
  }
}

void put_big_endian(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift & 0xff));
}

void put_chunk(std::string& png, std::string_view type, std::string_view data) {
  put_big_endian(png, static_cast<std::uint32_t>(data.size()));
  std::string body(type);
  body += data;
  png += body;
  put_big_endian(png, png_crc(body));
}

}  // namespace

std::string to_png(const Drawing& drawing, double scale) {
  const auto width = static_cast<int>(std::lround(drawing.width * scale));
  const auto height = static_cast<int>(std::lround(drawing.height * scale));
  MEGALITH_ASSERT(width > 0 && height > 0 && width < 32768 && height < 32768,
                  "a drawing needs a sensible size");
  Canvas canvas(width, height);
  for (const Stroke& stroke : drawing.strokes) {
    for (std::size_t i = 1; i < stroke.points.size(); ++i) {
      const Point& a = stroke.points[i - 1];
      const Point& b = stroke.points[i];
      canvas.line({a.x * scale, a.y * scale}, {b.x * scale, b.y * scale}, stroke.width * scale, stroke.colour,
                  stroke.opacity);
    }
  }
  for (const Disc& disc : drawing.discs) {
    const Point centre{disc.centre.x * scale, disc.centre.y * scale};
    canvas.line(centre, centre, disc.radius * 2 * scale, disc.colour, 1);
  }
  for (const Label& label : drawing.labels) draw_label(canvas, label, scale);

  std::string png = "\x89PNG\r\n\x1a\n";
  std::string header;
  put_big_endian(header, static_cast<std::uint32_t>(width));
  put_big_endian(header, static_cast<std::uint32_t>(height));
  constexpr std::string_view rest("\x08\x02\x00\x00\x00",
                                  5);  // 8 bits, RGB, deflate, no filter, not interlaced
  header += rest;
  put_chunk(png, "IHDR", header);
  put_chunk(png, "IDAT", png_compress(canvas.rows()));
  put_chunk(png, "IEND", "");
  return png;
}

}  // namespace megalith
