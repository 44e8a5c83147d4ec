#include "octavo/base/units.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "octavo/base/text.h"

namespace octavo {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

constexpr std::array kPrefixes = {Prefix{1e3, "k"},  Prefix{1e6, "M"},  Prefix{1e9, "G"},
                                  Prefix{1e12, "T"}, Prefix{1e15, "P"}, Prefix{1e18, "E"}};

// `value` >= 1000 in the largest prefix that leaves it at least 1 after rounding to `digits`.
std::string with_prefix(double value, int digits, const char* unit) {
  std::size_t index = 0;
  const double half_step = 0.5 * std::pow(10.0, -digits);
  while (index + 1 < kPrefixes.size() && std::abs(value) / kPrefixes[index].factor + half_step >= 1000.0) ++index;
  return cat(fixed(value / kPrefixes[index].factor, digits), " ", kPrefixes[index].name, unit);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  if (bytes > -1000 && bytes < 1000) return cat(bytes, " B");
  return with_prefix(static_cast<double>(bytes), 1, "B");
}

std::string format_seconds(Seconds seconds) {
  if (!std::isfinite(seconds)) return cat(seconds, " s");
  if (seconds < 0) return cat("-", format_seconds(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-6) return cat(fixed(seconds * 1e6, 0), " us");
  if (seconds < 0.99995) return cat(fixed(seconds * 1e3, 1), " ms");
  if (seconds < 59.995) return cat(fixed(seconds, 2), " s");
  const auto whole = static_cast<std::int64_t>(std::min(std::round(seconds), 9e15));
  if (whole < 3600) return cat(whole / 60, " min ", whole % 60, " s");
  return cat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string format_flops(Flops flops) {
  if (std::abs(flops) < 999.5) return cat(fixed(flops, 0), " FLOP");
  return with_prefix(flops, 1, "FLOP");
}

std::string format_flop_rate(double flops_per_second) {
  if (std::abs(flops_per_second) < 999.95) return cat(fixed(flops_per_second, 1), " FLOP/s");
  return with_prefix(flops_per_second, 1, "FLOP/s");
}

}  // namespace octavo
