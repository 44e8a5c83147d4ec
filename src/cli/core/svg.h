// A drawing as an SVG file: lines, marks and words at places in pixels, y downwards.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace octavo::cli {

struct Point {
  double x, y;
};

enum class Anchor { Start, Middle, End };

struct Stroke {
  std::string colour = "#333";
  double width = 1;
  std::string dashes = {};  // "6 3"; empty: none
};

class Svg {
 public:
  Svg(int width, int height) : width_(width), height_(height) {}

  void line(Point from, Point to, const Stroke& stroke);
  void polyline(std::span<const Point> points, const Stroke& stroke);
  void mark(Point at, const std::string& colour);
  void ring(Point at, const std::string& colour);
  void text(Point at, std::string_view words, Anchor anchor = Anchor::Start, int size = 12);
  /// Turned to read upwards.
  void text_upwards(Point at, std::string_view words, int size = 12);

  /// The whole file.
  std::string to_string() const;

 private:
  int width_, height_;
  std::string body_;
};

}  // namespace octavo::cli
