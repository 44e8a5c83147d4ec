// What people ask beside the best layout: what would make theirs fit, how far each strategy reaches, what the answer
// hangs on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octavo/plan/search.h"

namespace octavo {

/// A way to make a plan fit.
struct PlanChange {
  std::string what;  // "micro-batch 4 -> 2", "stash keep -> attention"
  PricedPlan plan;
};

/// Plans that fit and differ from `wanted` in one respect (stash policy, micro-batch, ZeRO stage, form of an axis, one
/// degree doubled with half the data degree, twice the accelerators for data), fastest first; where there is none, in
/// two. Empty if that is not enough either, or `wanted` fits.
std::vector<PlanChange> smallest_changes(const PlanRequest& request, const StepPlan& wanted);

/// How far a strategy reaches within the memory limit: everything recomputed, ZeRO 3 over the data ranks, the best of
/// its forms and degrees.
struct StrategyReach {
  std::string name;                        // as strategy_name()
  std::int64_t largest_micro_batch = 0;    // sequences of the job's length at once; 0: not one
  std::int64_t longest_sequence = 0;       // tokens, one at once; to 1,024; 0: none
  std::optional<int> fewest_accelerators;  // of one replica; of "data": that hold the model together
  int data_degree = 0;                     // that the fewest leave
};

/// Of each strategy of one axis, and of pipeline, sequence and fold together with tensor or pipeline. About a tenth of
/// a second each for 1,024 accelerators.
std::vector<StrategyReach> strategy_reach(const PlanRequest& request);

/// What the best plan's step time does when something is 10 % slower or faster.
struct Sensitivity {
  std::string what;                         // "links", "latency", "memory bandwidth", "matmul rate"
  double slower, faster;                    // relative change of the step time: 0.03 is 3 % longer
  std::optional<std::string> other_winner;  // of the result's plans, where another is best under either
};
std::vector<Sensitivity> sensitivities(const PlanRequest& request, const SearchResult& result);

/// The fastest plan at a sequence length, tokens per batch held.
struct LengthWinner {
  std::int64_t sequence_length;
  std::optional<PricedPlan> plan;  // absent: nothing fits, or the batch has fewer tokens
};
std::vector<LengthWinner> winners_by_length(const PlanRequest& request, const SearchSpace& space,
                                            std::span<const std::int64_t> lengths);

/// What the validation of the rules says of a step time.
struct Confidence {
  double error = 0;        // relative, in the mean; 0: unknown
  Seconds least, most;     // of the best plan's step
  int not_told_apart = 0;  // of the other best plans: how many are within the error of the first
};
Confidence confidence(const PlanRequest& request, const SearchResult& result);

}  // namespace octavo
