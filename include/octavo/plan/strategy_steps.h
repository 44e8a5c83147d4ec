// One training step of a model under each strategy alone, at one length: the layouts that `octavo compare` sets side by
// side, priced as `octavo plan` prices them (plan/search.h). D ranks:
//   data              data=D:zero3
//   tensor            tensor=D
//   tensor scatter    tensor=D:scatter
//   sequence          sequence=D:gather, :ring, :ulysses
//   tensor sequence   tensor=T sequence=S:gather for every T x S = D, both above 1
//   fold              fold=D:weights, fold=D:activations
//   with ZeRO 3       those with a sequence axis once more, weights and all cut over its ranks as well: as they are run
//                     in practice (tensor then with scatter)
// A tensor degree that does not divide a dimension has :replicate, the way out that frameworks take.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octavo/plan/search.h"
#include "octavo/plan/strategies.h"

namespace octavo {

struct ComparedLayout {
  StrategyRanks ranks;
  Layout layout;
};

/// In the order above. Throws UsageError for D below 2: there is nothing to compare.
std::vector<ComparedLayout> compared_layouts(const ModelSpec& model, int ranks);

/// A step, or the rule of plan/search.h that the layout breaks, in one line.
struct StrategyStep {
  std::optional<PricedPlan> priced;
  std::string broken;
};

/// All of the batch at once, of data ranks each its share: as many tokens on every rank, and the tokens N of
/// plan/strategies.h. Throws UsageError for what price() refuses of the request itself, and more
/// ranks than the cluster has.
StrategyStep strategy_step(const PlanRequest& request, const Layout& layout, const StashPolicy& stash);

/// Of steps, those that no other beats in time and headroom both: indices into `steps`, fastest first. Steps
/// beyond `limit` and absent ones are not among them. Of two that are alike, the first.
std::vector<std::size_t> time_memory_front(std::span<const StrategyStep> steps, Bytes limit);

}  // namespace octavo
