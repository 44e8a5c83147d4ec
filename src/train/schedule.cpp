#include "octavo/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace octavo {

double Schedule::learning_rate(std::int64_t step) const {
  if (step < warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (total_steps <= warmup_steps) return peak;
  // The first step after the warm-up has the peak, the last one the floor.
  const double span = static_cast<double>(std::max<std::int64_t>(1, total_steps - 1 - warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - warmup_steps) / span);
  return floor + (peak - floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

}  // namespace octavo
