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
/// two. Empty if that is not enough either, or `wanted` fits. No axis that the space leaves out comes in, and no change
/// that leaves what check_runnable() takes where the space asks for that.
std::vector<PlanChange> smallest_changes(const PlanRequest& request, const StepPlan& wanted,
                                         const SearchSpace& space = {});

/// How far a strategy reaches within the memory limit: everything recomputed, the highest ZeRO stage of the space over
/// the data ranks, 1f1b, the best of its forms and degrees. Micro-batch and sequence: on the whole cluster, by degrees
/// that divide it. The fewest accelerators: by any degrees, whether they divide the cluster or not, that share out the
/// batch.
struct StrategyReach {
  std::string name;                      // as strategy_name()
  std::int64_t largest_micro_batch = 0;  // sequences of the job's length at once; 0: not one
  std::int64_t longest_sequence = 0;     // tokens, one at once; to 1,024; 0: none
  std::optional<PricedPlan> fewest;      // with the fewest accelerators: the whole batch, one sequence at once
  int times = 0;                         // that the cluster has these
};

/// Of each strategy of one axis, and of pipeline, sequence and fold together with tensor or pipeline, as far as the
/// space allows their axes. About a tenth of a second each for 1,024 accelerators.
std::vector<StrategyReach> strategy_reach(const PlanRequest& request, const SearchSpace& space = {});

/// What the best plan's step time does when something is slower or faster.
struct Sensitivity {
  enum class Kind {
    TenPercent,  // 10 % slower or faster: links, latency, memory bandwidth, matmuls and attention, what is once a step
    Hiding       // all of an axis' communication shows, or none
  };
  Kind kind;
  std::string what;       // "links"; "activations of tensor and fold"
  double slower, faster;  // relative change of the step time: 0.03 is 3 % longer
  // The layout that is best then of those of the result, with its micro-batch and stash policy as they are; if another
  std::optional<std::string> winner_if_slower, winner_if_faster;
};
std::vector<Sensitivity> sensitivities(const PlanRequest& request, const SearchResult& result);

/// The fastest plan at a sequence length, tokens per batch held.
struct LengthWinner {
  std::int64_t sequence_length;
  std::optional<PricedPlan> plan;  // absent: nothing fits, or the batch has fewer tokens
};
std::vector<LengthWinner> winners_by_length(const PlanRequest& request, const SearchSpace& space,
                                            std::span<const std::int64_t> lengths);

/// The fastest plan on so many nodes of the cluster's kind, batch held.
struct SizeWinner {
  int num_nodes;
  std::optional<PricedPlan> plan;  // absent: nothing fits
};
std::vector<SizeWinner> winners_by_nodes(const PlanRequest& request, const SearchSpace& space,
                                         std::span<const int> num_nodes);

/// What the validation of the rules says of the best plan's step time.
struct Confidence {
  double mean_error = 0, left_out_error = 0, largest_error = 0;  // as of TimeRules; 0: there are none
  std::vector<std::string> beyond;  // that no such run had: "fold", "DeltaNet layers", "fp32"
  int as_fast = 0;                  // other sets of degrees within likely_error() of the best

  bool has_runs() const { return mean_error > 0; }
  /// Of a model that the constants were not fitted to.
  double likely_error() const { return left_out_error > 0 ? left_out_error : mean_error; }
  bool is_measured() const { return has_runs() && beyond.empty(); }
};
Confidence confidence(const PlanRequest& request, const SearchResult& result);

/// The same of a layout by itself.
Confidence confidence(const PlanRequest& request, const Layout& layout);

}  // namespace octavo
