#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/emulated_world.h"

namespace octavo {
namespace {

using Units = std::vector<std::pair<std::string_view, double>>;

/// "20us" with {"us", 1e-6}; nullopt for what is no number with one of the units.
std::optional<double> quantity(std::string_view text, const Units& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit = text.substr(end - text.data());
  for (const auto& [name, factor] : units) {
    if (unit == name) return number * factor;
  }
  return std::nullopt;
}

}  // namespace

LinkSpec parse_link(const std::string& text) {
  static const Units kBandwidths = {{"b/s", 1.0},         {"kb/s", 1e3},           {"mb/s", 1e6},
                                    {"gb/s", 1e9},        {"tb/s", 1e12},          {"kib/s", 1024.0},
                                    {"mib/s", 1048576.0}, {"gib/s", 1073741824.0}, {"tib/s", 1099511627776.0}};
  static const Units kTimes = {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  std::string plain;
  for (const unsigned char c : text) {
    if (std::isspace(c) == 0) plain += static_cast<char>(std::tolower(c));
  }
  const std::vector<std::string> parts = split(plain, ',');
  if (parts.size() == 2) {
    const auto bandwidth = quantity(parts[0], kBandwidths), latency = quantity(parts[1], kTimes);
    if (bandwidth && latency && *bandwidth >= 1 && *latency >= 0 && *latency < 3600) return {*bandwidth, *latency};
  }
  throw UsageError(
      cat("[comm] link ", in_quotes(text),
          ": it is bandwidth,latency, as 5GB/s,20us (kB to TB or KiB to TiB per second; s, ms, us, ns), with "
          "at least 1 B/s and less than an hour"));
}

std::string LinkSpec::to_string() const {
  return cat(format_bytes(static_cast<Bytes>(std::min(bytes_per_second, 9e18))), "/s, ", format_seconds(latency));
}

Seconds busy_seconds(const LinkSpec& link, const Ledger& ledger) {
  return static_cast<Seconds>(ledger.logical_bytes()) / link.bytes_per_second;
}

}  // namespace octavo
