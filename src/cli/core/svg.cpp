#include "cli/core/svg.h"

#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

std::string escaped(std::string_view words) {
  std::string out;
  for (const char letter : words) {
    switch (letter) {
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
        out += letter;
    }
  }
  return out;
}

std::string number(double value) {
  return fixed(value, 1);
}

std::string stroke_text(const Stroke& stroke) {
  const std::string dashes = stroke.dashes.empty() ? "" : cat(" stroke-dasharray=\"", stroke.dashes, "\"");
  return cat(" fill=\"none\" stroke=\"", stroke.colour, "\" stroke-width=\"", stroke.width, "\"", dashes, "/>\n");
}

std::string_view anchor_text(Anchor anchor) {
  if (anchor == Anchor::Middle) return "middle";
  return anchor == Anchor::End ? "end" : "start";
}

}  // namespace

void Svg::line(Point from, Point to, const Stroke& stroke) {
  const Point both[] = {from, to};
  polyline(both, stroke);
}

void Svg::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.empty()) return;
  body_ += "<polyline points=\"";
  for (std::size_t i = 0; i < points.size(); ++i) {
    body_ += cat(i > 0 ? " " : "", number(points[i].x), ",", number(points[i].y));
  }
  body_ += cat("\"", stroke_text(stroke));
}

void Svg::mark(Point at, const std::string& colour) {
  body_ += cat("<circle cx=\"", number(at.x), "\" cy=\"", number(at.y), "\" r=\"3.5\" fill=\"", colour, "\"/>\n");
}

void Svg::ring(Point at, const std::string& colour) {
  body_ += cat("<circle cx=\"", number(at.x), "\" cy=\"", number(at.y), "\" r=\"7\"") +
           stroke_text({.colour = colour, .width = 1.5});
}

void Svg::text(Point at, std::string_view words, Anchor anchor, int size) {
  body_ += cat("<text x=\"", number(at.x), "\" y=\"", number(at.y), "\" font-size=\"", size, "\" text-anchor=\"",
               anchor_text(anchor), "\">", escaped(words), "</text>\n");
}

void Svg::text_upwards(Point at, std::string_view words, int size) {
  const std::string x = number(at.x), y = number(at.y);
  body_ += cat("<text x=\"", x, "\" y=\"", y, "\" font-size=\"", size,
               "\" text-anchor=\"middle\" transform=\"rotate(-90 ", x, " ", y, ")\">", escaped(words), "</text>\n");
}

std::string Svg::to_string() const {
  return cat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width_,
             "\" height=\"", height_, "\" viewBox=\"0 0 ", width_, " ", height_,
             "\" font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             body_, "</svg>\n");
}

}  // namespace octavo::cli
