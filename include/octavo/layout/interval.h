// Half-open ranges: of elements, rows or units.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo {

struct Interval {
  std::int64_t begin = 0, end = 0;  // [begin, end)

  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const Interval&) const = default;
};

inline Interval intersection(Interval a, Interval b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Part `index` of [0, total) cut in `parts` as evenly as whole multiples of `grain` allow; early parts are the larger.
Interval even_part(std::int64_t total, std::int64_t parts, std::int64_t index, std::int64_t grain = 1);

inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace octavo
