#include "octavo/train/schedule.h"

#include <doctest/doctest.h>

using octavo::Schedule;

TEST_CASE("the learning rate rises linearly to its peak, then falls along a cosine to its floor") {
  const Schedule schedule{.peak = 1.0, .floor = 0.1, .warmup_steps = 4, .total_steps = 105};
  CHECK(schedule.learning_rate(0) == doctest::Approx(0.25));
  CHECK(schedule.learning_rate(3) == doctest::Approx(1.0));
  CHECK(schedule.learning_rate(4) == doctest::Approx(1.0));
  CHECK(schedule.learning_rate(54) == doctest::Approx(0.55));
  CHECK(schedule.learning_rate(104) == doctest::Approx(0.1));
  CHECK(schedule.learning_rate(1000) == doctest::Approx(0.1));
  for (int step = 5; step < 105; ++step) CHECK(schedule.learning_rate(step) < schedule.learning_rate(step - 1));
}

TEST_CASE("without a total the learning rate stays at its peak") {
  const Schedule schedule{.peak = 0.5, .floor = 0, .warmup_steps = 0, .total_steps = 0};
  CHECK(schedule.learning_rate(0) == 0.5);
  CHECK(schedule.learning_rate(100000) == 0.5);
}

TEST_CASE("a run of one step trains at the peak") {
  CHECK(Schedule{.peak = 1, .floor = 0, .warmup_steps = 0, .total_steps = 1}.learning_rate(0) == 1.0);
}
