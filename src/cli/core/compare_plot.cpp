#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/core/compare_report.h"
#include "cli/core/svg.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

constexpr int kWidth = 1180;
constexpr double kGigabyte = 1e9;

struct Box {
  double left, top, right, bottom;
};
constexpr Box kMemoryPanel{80, 60, 560, 460}, kFrontPanel{680, 60, 1150, 460};

constexpr std::array kDashes = {"", "9 6", "3 4"};

/// Colours that people with colour-blindness tell apart (Okabe and Ito, 2008), and greys; neighbours have other dashes,
/// for some lines lie on each other.
Stroke stroke_of(std::size_t layout) {
  static constexpr std::array kColours = {"#e69f00", "#56b4e9", "#0072b2", "#009e73", "#8a8a00",
                                          "#cc79a7", "#d55e00", "#7f7f7f", "#000000", "#aa3377"};
  return {kColours[layout % kColours.size()], 2, kDashes[layout % kDashes.size()]};
}

/// From values to a side of a panel.
class Scale {
 public:
  Scale(double least, double most, double from, double to, bool is_log)
      : least_(is_log ? std::log(least) : least),
        most_(is_log ? std::log(most) : most),
        from_(from),
        to_(to),
        is_log_(is_log) {}
  double at(double value) const {
    const double place = is_log_ ? std::log(value) : value;
    return from_ + (place - least_) / (most_ - least_) * (to_ - from_);
  }

 private:
  double least_, most_, from_, to_;
  bool is_log_;
};

std::string length_text(std::int64_t tokens) {
  constexpr std::int64_t kKilo = 1024, kMega = 1048576;
  if (tokens % kMega == 0) return cat(tokens / kMega, "M");
  return tokens % kKilo == 0 ? cat(tokens / kKilo, "K") : cat(tokens);
}

/// 1, 2 and 5 times powers of ten between two values; where these are close, all digits.
std::vector<double> log_ticks(double least, double most) {
  constexpr double kClose = 5;
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(least))); decade <= most; decade *= 10) {
    for (const int digit : {1, 2, 3, 4, 5, 6, 7, 8, 9}) {
      const bool is_used = most / least < kClose || digit == 1 || digit == 2 || digit == 5;
      if (is_used && digit * decade >= least && digit * decade <= most) ticks.push_back(digit * decade);
    }
  }
  return ticks;
}

/// Four to ten round steps between two values.
std::vector<double> even_ticks(double least, double most) {
  constexpr double kMostTicks = 7;
  double step = std::pow(10, std::floor(std::log10((most - least) / kMostTicks)));
  for (const double times : {2.0, 2.5, 2.0}) {
    if ((most - least) / step > kMostTicks) step *= times;
  }
  std::vector<double> ticks;
  for (double tick = std::ceil(least / step) * step; tick <= most * (1 + 1e-9); tick += step) ticks.push_back(tick);
  return ticks;
}

void frame(Svg& svg, const Box& box, const std::string& title, const std::string& below, const std::string& beside) {
  const std::array corners{Point{box.left, box.top}, Point{box.right, box.top}, Point{box.right, box.bottom},
                           Point{box.left, box.bottom}, Point{box.left, box.top}};
  svg.polyline(corners, {});
  svg.text({(box.left + box.right) / 2, box.top - 14}, title, Anchor::Middle, 14);
  svg.text({(box.left + box.right) / 2, box.bottom + 38}, below, Anchor::Middle);
  svg.text_upwards({box.left - 52, (box.top + box.bottom) / 2}, beside);
}

void tick_below(Svg& svg, const Box& box, double x, const std::string& words) {
  svg.line({x, box.bottom}, {x, box.top}, {"#ddd", 0.5, ""});
  svg.text({x, box.bottom + 17}, words, Anchor::Middle, 11);
}

void tick_beside(Svg& svg, const Box& box, double y, const std::string& words) {
  svg.line({box.left, y}, {box.right, y}, {"#ddd", 0.5, ""});
  svg.text({box.left - 6, y + 4}, words, Anchor::End, 11);
}

/// As short as it is exact.
std::string value_text(double value) {
  return cat(std::round(value * 1000) / 1000);
}

double gigabytes(const PricedPlan& plan) {
  return static_cast<double>(plan.memory.total()) / kGigabyte;
}

void memory_panel(Svg& svg, const CompareReport& report) {
  constexpr double kMargin = 1.25;
  const double limit = static_cast<double>(report.request.memory_limit) / kGigabyte;
  double least = limit, most = limit;
  for (const LengthSteps& row : report.lengths) {
    for (const StrategyStep& step : row.steps) {
      if (!step.priced) continue;
      least = std::min(least, gigabytes(*step.priced));
      most = std::max(most, gigabytes(*step.priced));
    }
  }
  least /= kMargin;
  most *= kMargin;
  const Box& box = kMemoryPanel;
  const auto first = static_cast<double>(report.lengths.front().sequence_length) / kMargin;
  const auto last = static_cast<double>(report.lengths.back().sequence_length) * kMargin;
  const Scale x(first, last, box.left, box.right, true), y(least, most, box.bottom, box.top, true);
  frame(svg, box, cat("Peak memory of a rank, stash ", report.stash.to_string()), "tokens of a sequence",
        "peak memory, GB");
  for (const LengthSteps& row : report.lengths) {
    tick_below(svg, box, x.at(static_cast<double>(row.sequence_length)), length_text(row.sequence_length));
  }
  for (const double tick : log_ticks(least, most)) tick_beside(svg, box, y.at(tick), value_text(tick));
  svg.line({box.left, y.at(limit)}, {box.right, y.at(limit)}, {"#c00", 1.5, "8 4"});
  svg.text({box.right - 6, y.at(limit) - 5},
           cat(format_bytes(report.request.memory_limit), " may be used of ", report.request.cluster.accelerator.name),
           Anchor::End, 11);
  // Solid lines first, so that they do not hide the dashed ones on them.
  for (std::size_t dashes = 0; dashes < kDashes.size(); ++dashes) {
    for (std::size_t i = dashes; i < report.layouts.size(); i += kDashes.size()) {
      std::vector<Point> points;
      for (const LengthSteps& row : report.lengths) {
        if (!row.steps[i].priced) continue;
        points.push_back({x.at(static_cast<double>(row.sequence_length)), y.at(gigabytes(*row.steps[i].priced))});
      }
      svg.polyline(points, stroke_of(i));
      for (const Point& point : points) svg.mark(point, stroke_of(i).colour);
    }
  }
}

void front_panel(Svg& svg, const CompareReport& report) {
  const Box& box = kFrontPanel;
  const LengthSteps* row = report.longest_that_fits();
  if (row == nullptr) {
    frame(svg, box, "Nothing fits at any length", "step time", "headroom");
    return;
  }
  const Bytes limit = report.request.memory_limit;
  const auto place = [&](std::size_t i) {
    const PricedPlan& plan = *row->steps[i].priced;
    return Point{plan.time.total, static_cast<double>(plan.headroom(limit)) / kGigabyte};
  };
  double fastest = std::numeric_limits<double>::max(), slowest = 0, most = 0;
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < row->steps.size(); ++i) {
    if (!row->steps[i].priced || row->steps[i].priced->headroom(limit) < 0) continue;
    fitting.push_back(i);
    fastest = std::min(fastest, place(i).x);
    slowest = std::max(slowest, place(i).x);
    most = std::max(most, place(i).y);
  }
  constexpr double kMargin = 1.1, kLeastHeadroom = 0.1;  // GB: an axis has a length where nothing is left
  const double left = fastest / kMargin, right = slowest * kMargin;
  const double top = std::max(most * kMargin, kLeastHeadroom);
  const Scale x(left, right, box.left, box.right, false), y(0, top, box.bottom, box.top, false);
  frame(svg, box, cat("At ", length_text(row->sequence_length), ": ringed are those that no other beats in both"),
        "step time, s", "headroom, GB");
  for (const double tick : even_ticks(left, right)) tick_below(svg, box, x.at(tick), value_text(tick));
  for (const double tick : even_ticks(0, top)) tick_beside(svg, box, y.at(tick), value_text(tick));
  std::vector<Point> front;
  for (const std::size_t i : row->front) front.push_back({x.at(place(i).x), y.at(place(i).y)});
  svg.polyline(front, {"#999", 1, "4 3"});
  for (const std::size_t i : fitting) svg.mark({x.at(place(i).x), y.at(place(i).y)}, stroke_of(i).colour);
  for (const Point& point : front) svg.ring(point, "#333");
}

constexpr int kLegendColumns = 3;
constexpr double kLegendTop = 530, kLegendLine = 20;

/// "tensor=8:scatter"; below the panels, in columns.
void legend(Svg& svg, const CompareReport& report) {
  constexpr double kColumn = 365, kLeft = 60, kSample = 28;
  for (std::size_t i = 0; i < report.layouts.size(); ++i) {
    const double x = kLeft + kColumn * static_cast<double>(i % kLegendColumns);
    const double y = kLegendTop + kLegendLine * static_cast<double>(i / kLegendColumns);
    const bool is_drawn = std::any_of(report.lengths.begin(), report.lengths.end(),
                                      [&](const LengthSteps& row) { return row.steps[i].priced.has_value(); });
    svg.line({x, y - 4}, {x + kSample, y - 4}, stroke_of(i));
    svg.mark({x + kSample / 2, y - 4}, stroke_of(i).colour);
    svg.text({x + kSample + 8, y}, cat(report.layouts[i].layout.to_string(), is_drawn ? "" : " (refused)"),
             Anchor::Start, 11);
  }
}

}  // namespace

std::string compare_plot(const CompareReport& report) {
  const std::size_t lines = (report.layouts.size() + kLegendColumns - 1) / kLegendColumns;
  Svg svg(kWidth, static_cast<int>(kLegendTop + kLegendLine * static_cast<double>(lines)) + 10);
  svg.text({kWidth / 2.0, 24},
           cat(report.request.model.model_type, ", ", report.degree, " ranks of ", report.request.cluster.to_string(),
               ", ", report.request.job.batch, report.request.job.batch == 1 ? " sequence" : " sequences", " a step"),
           Anchor::Middle, 15);
  memory_panel(svg, report);
  front_panel(svg, report);
  legend(svg, report);
  return svg.to_string();
}

}  // namespace octavo::cli
