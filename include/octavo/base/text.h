// Text made from values, without a formatting library in the header.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// The arguments written one after another: cat("rank ", 3) is "rank 3".
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  static_cast<void>((out << ... << args));
  return out.str();
}

/// `text` with control characters, line breaks among them, and what is no UTF-8 written as \x1b.
std::string printable(std::string_view text);

/// `value` with `digits` digits after the point: fixed(1.25, 1) is "1.2".
std::string fixed(double value, int digits);

/// A share as people read it: percent(0.125) is "12.5 %"; never "-0.0 %".
std::string percent(double share, int digits = 1);

/// `value` with thousands separated by commas: "1,234,567".
std::string with_commas(std::int64_t value);

/// The parts of `text` between `separator`; empty parts are kept.
std::vector<std::string> split(std::string_view text, char separator);

/// `parts` with `separator` between them.
std::string join(std::span<const std::string> parts, std::string_view separator);

/// The candidate with the smallest edit distance to `word`, for "did you mean"; empty if none is close.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// `text` in double quotes, on one line whatever it holds: control characters and bytes that are not UTF-8 become
/// \xNN, and all beyond `max_bytes` becomes "...". For values of unknown origin in messages.
std::string in_quotes(std::string_view text, std::size_t max_bytes = 100);

}  // namespace octavo
