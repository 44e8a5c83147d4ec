// The learning rate of a step: linear warm-up, then a cosine down to a floor (Loshchilov and Hutter, SGDR, 2017).
#pragma once

#include <cstdint>

namespace octavo {

struct Schedule {
  double peak = 1e-3;  // learning rate after the warm-up
  double floor = 0.0;  // learning rate at the last step
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // 0: constant after the warm-up

  /// `step` counts from 0. Steps beyond total_steps stay at the floor.
  double learning_rate(std::int64_t step) const;
};

}  // namespace octavo
