#include "core/format.h"
#include "train/drawing.h"

namespace megalith {
namespace {

std::string hex(const Colour& colour) {
  return format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char character : text) {
    switch (character) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // Control characters are not allowed in XML.
        out += static_cast<unsigned char>(character) < 0x20 ? ' ' : character;
    }
  }
  return out;
}

std::string_view anchor(TextAlign align) {
  switch (align) {
    case TextAlign::left:
      return "start";
    case TextAlign::middle:
      return "middle";
    case TextAlign::right:
      return "end";
  }
  return "start";
}

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      drawing.width, drawing.height);
  for (const Stroke& stroke : drawing.strokes) {
    svg += format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\" "
        "stroke-linejoin=\"round\" points=\"",
        hex(stroke.colour), stroke.width, stroke.opacity);
    for (const Point& point : stroke.points) svg += format("{:.2f},{:.2f} ", point.x, point.y);
    svg += "\"/>\n";
  }
  for (const Disc& disc : drawing.discs) {
    svg += format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" fill=\"{}\"/>\n", disc.centre.x,
                  disc.centre.y, disc.radius, hex(disc.colour));
  }
  for (const Label& label : drawing.labels) {
    svg += format(
        "<text x=\"{:.2f}\" y=\"{:.2f}\" font-family=\"sans-serif\" font-size=\"{:.1f}\" fill=\"{}\" "
        "text-anchor=\"{}\"{}>{}</text>\n",
        label.at.x, label.at.y, label.size, hex(label.colour), anchor(label.align),
        label.upward ? format(" transform=\"rotate(-90 {:.2f} {:.2f})\"", label.at.x, label.at.y) : "",
        escaped(label.text));
  }
  return svg + "</svg>\n";
}

}  // namespace megalith
