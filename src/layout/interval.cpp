#include "octavo/layout/interval.h"

#include "octavo/base/error.h"

namespace octavo {

Interval even_part(std::int64_t total, std::int64_t parts, std::int64_t index, std::int64_t grain) {
  internal_check(total >= 0 && parts >= 1 && index >= 0 && index < parts && grain >= 1, "[layout] even_part: bad part");
  const std::int64_t grains = (total + grain - 1) / grain;
  const std::int64_t base = grains / parts, extra = grains % parts;
  const auto border = [&](std::int64_t i) { return std::min(total, (i * base + std::min(i, extra)) * grain); };
  return {border(index), border(index + 1)};
}

}  // namespace octavo
