// Which layout is best for a model, a batch and a cluster: every layout there is, most of them ruled out by arithmetic,
// the others priced.
//
// The space. Letters: W accelerators, B sequences of S tokens in a batch, L layers.
//   degrees      pipeline, data, expert, sequence, fold, tensor: all that multiply to W; expert for models with experts
//   data         zero0, zero1, zero3, where more than one rank has the same weights
//   pipeline     1f1b, gpipe, zb, interleaved-V for every V of 2 to 8 with pipeline x V dividing L
//   tensor       with and without scatter; replicate where it does not divide
//   sequence     gather, ring, ulysses (models with recurrent layers hand on states under each)
//   fold         weights, activations, auto
//   stash        keep; all named values; attention and qkv; attention; recompute
//   micro-batch  the divisors of a rank's share of the batch
//   order        tensor innermost, then fold, sequence, expert, data, pipeline; and every other axis moved innermost
//                where that puts other ranks into a node
//
// The rules, in the order in which they are applied; a layout dies by the first that it breaks:
//   layers       pipeline x V > L
//   experts      expert x tensor does not divide the model's experts, where expert is above 1
//   batch        data x expert does not divide B; a micro-batch that was asked for exceeds a rank's share
//   tokens       S < 2 sequence x fold: a rank without tokens
//   units        tensor divides a dimension not, under `refuse` (its copies under `replicate` live on)
//   heads        ulysses: tensor x sequence does not divide query, KV or key heads
//   schedule     interleaved: micro-batches no multiple of the stages
//   dominated    never faster than another of the space that fits, by the formulas: zero0 where zero1 fits (it sends as
//                many bytes or more, and runs the whole optimizer on every rank); a stash policy where another fits
//                that computes a part of the same again; an order of axes that computes longer than a plan of the
//                same degrees takes that needs no more memory
//   memory       the peak exceeds the limit. Where one micro-batch does not fit by far, larger ones are not looked
//                at: a rank has as many tokens in flight or more. Nor is zero0 where zero1 does not fit
// What is left is priced in full: its peak (plan/memory.h) and its step (plan/step_time.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/mesh/cluster.h"
#include "octavo/plan/job.h"
#include "octavo/plan/memory.h"
#include "octavo/plan/step_time.h"

namespace octavo {

/// Of the accelerator's memory, what a plan may use: the rest is for the runtime, communication libraries and what the
/// allocator cannot use.
inline constexpr double kUsableMemory = 0.92;

struct PlanRequest {
  ModelSpec model;
  TrainingJob job;
  Cluster cluster;
  TimeRules rules;
  Bytes memory_limit = 0;  // of a rank
};

/// The limit where nobody gave one.
Bytes default_memory_limit(const Cluster& cluster);

/// Parts of the space; the default is all of it.
struct SearchSpace {
  std::array<bool, 6> axes{true, true, true, true, true, true};  // by Axis: may its degree exceed 1
  std::vector<ZeroStage> zero;                                   // these alone; empty: all
  std::vector<PipelineForm> schedules;                           // likewise
  bool runnable = false;                                         // only what check_runnable() (layout/layout.h) takes
  std::optional<StashPolicy> stash;                              // this one alone
  std::optional<std::int64_t> micro_batch;                       // likewise
  std::size_t threads = 0;  // that search; 0: as many as the machine runs at once. Results do not depend on it

  bool allows(Axis axis) const;
  bool allows(ZeroStage stage) const;
  bool allows(PipelineForm schedule) const;
};

struct PricedPlan {
  StepPlan plan;
  MemoryEstimate memory;
  StepTime time;

  Bytes headroom(Bytes limit) const { return limit - memory.total(); }
};

enum class Rule { Layers, Experts, Batch, Tokens, Units, Heads, Schedule, Dominated, Memory };
inline constexpr int kNumRules = 9;

/// "layers", "experts", ...
std::string_view rule_name(Rule rule);
/// For people: "more stages than layers".
std::string_view rule_text(Rule rule);

struct RuledOut {
  std::int64_t layouts = 0;
  std::string example;  // the first, with its numbers
};

/// The fastest plan of those that use the same axes, data apart.
struct StrategyBest {
  std::string name;  // "pipeline + tensor"; "data" where there is no other
  PricedPlan plan;
};

struct SearchResult {
  std::vector<PricedPlan> best;          // of each set of degrees the fastest; fastest first
  std::vector<PricedPlan> front;         // no other is faster and has more headroom; fastest first
  std::vector<StrategyBest> strategies;  // fastest first
  std::array<RuledOut, kNumRules> ruled_out;
  std::int64_t layouts = 0;  // of the space
  std::int64_t priced = 0;   // in full
  Seconds seconds = 0;       // that the search took

  const RuledOut& by(Rule rule) const { return ruled_out[static_cast<int>(rule)]; }
};

/// Local; the same for the same request, whatever the machine (`seconds` apart). Ties go to the first in the order of
/// the space. Throws UsageError for models and jobs that MemoryModel or TimeModel refuse, and a limit below 1 byte.
SearchResult search(const PlanRequest& request, const SearchSpace& space = {});

/// One plan in full, whether it fits or not. Throws UsageError naming the first rule that it breaks, memory apart.
PricedPlan price(const PlanRequest& request, const StepPlan& plan);

/// Axes above 1, data apart, as in StrategyBest.
std::string strategy_name(const Layout& layout);

}  // namespace octavo
