// What is to be trained, and one way to do it: what a plan prices.
#pragma once

#include <cstdint>

#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/stash_policy.h"

namespace octavo {

/// A training step, whatever the layout.
struct TrainingJob {
  std::int64_t sequence_length = 0;  // tokens, >= 1
  std::int64_t batch = 0;            // sequences per step over all ranks, >= 1
  ElementType compute = ElementType::BFloat16;
};

/// One way to run it.
struct StepPlan {
  Layout layout;
  std::int64_t micro_batch = 1;  // sequences that a data rank takes at once, >= 1
  StashPolicy stash;
};

}  // namespace octavo
