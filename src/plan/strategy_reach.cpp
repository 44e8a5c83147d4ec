#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/plan/advice.h"
#include "octavo/plan/audit_dimensions.h"
#include "octavo/spec/parameters.h"
#include "plan/plan_space.h"

namespace octavo {
namespace {

/// One strategy. Its replicas are degrees of its axes that divide the cluster, with data=1.
class Reach {
 public:
  Reach(const PlanRequest& request, const SearchSpace& space, std::span<const Axis> axes)
      : request_(request), space_(space), world_(request.cluster.world_size()), axes_(axes.begin(), axes.end()) {
    extend(
        {}, axes, world_, [&](int ranks) { return world_ % ranks == 0; }, replicas_);
    if (!replicas_.empty()) name_ = strategy_name(layout_of(replicas_.front()));
  }

  StrategyReach run() {
    StrategyReach reach;
    reach.name = name_;
    reach.largest_micro_batch = most(kMostSequences, [&](const Degrees& degrees, std::int64_t size) {
      return fits(degrees, request_.job.sequence_length, size);
    });
    reach.longest_sequence = kTokens * most(kMostTokens / kTokens, [&](const Degrees& degrees, std::int64_t length) {
                               return fits(degrees, length * kTokens, 1);
                             });
    find_fewest(reach);
    return reach;
  }

 private:
  static constexpr int kMostRanks = 4096;  // of a replica by any degrees
  static constexpr std::int64_t kMostSequences = 1 << 16, kTokens = 1024, kMostTokens = std::int64_t{1} << 27;

  /// Degrees of the axes, all above 1, that multiply to `most` ranks or fewer, and whose products on the way are taken.
  template <class Takes>
  void extend(const Degrees& degrees, std::span<const Axis> axes, int most, const Takes& takes,
              std::vector<Degrees>& found) const {
    if (axes.empty()) {
      found.push_back(degrees);
      return;
    }
    internal_check(axes.front() != Axis::Data, "[plan] data belongs to every strategy");
    for (int degree = 2; degrees.replica() * degree <= most; ++degree) {
      if (!takes(degrees.replica() * degree) || !allows(axes.front(), degree)) continue;
      Degrees next = degrees;
      next.of(axes.front()) = degree;
      extend(next, axes.subspan(1), most, takes, found);
    }
  }

  /// That the space allows: what holds least.
  ZeroStage highest_zero() const {
    for (const ZeroStage stage : {ZeroStage::Weights, ZeroStage::Optimizer}) {
      if (space_.allows(stage)) return stage;
    }
    return ZeroStage::None;
  }

  Layout layout_of(const Degrees& degrees) const {
    Layout layout;
    layout.mesh = mesh_of(degrees);
    layout.zero = degrees.copies() > 1 ? highest_zero() : ZeroStage::None;
    if (degrees.tensor > 1) {
      if (!tensor_fit(request_.model, degrees.tensor).failing.empty()) layout.misfit = Misfit::Replicate;
      layout.tensor_form = TensorForm::Scatter;  // holds as few tokens as all-reduce or fewer
    }
    return layout;
  }

  bool allows(Axis axis, int degree) const {
    if (axis == Axis::Pipeline) return degree <= static_cast<int>(request_.model.layers.size());
    return axis != Axis::Expert || num_experts(request_.model) % degree == 0;
  }

  bool fits(const Degrees& degrees, std::int64_t length, std::int64_t micro_batch) const {
    return !fitting(degrees, length, micro_batch, true).empty();
  }

  /// Every form that fits, everything recomputed; one micro-batch per stage.
  std::vector<Layout> fitting(const Degrees& degrees, std::int64_t length, std::int64_t micro_batch,
                              bool only_first = false) const {
    std::vector<Layout> found;
    if (degrees.sequence * degrees.fold > 1 && length < 2 * degrees.sequence * degrees.fold) return found;
    const TrainingJob job{length, micro_batch * degrees.data * degrees.expert * degrees.pipeline, request_.job.compute};
    const MemoryModel memory(request_.model, job);
    StepPlan plan{layout_of(degrees), micro_batch, {StashPolicy::Kind::Recompute, {}}};
    for (const SequenceForm sequence : {SequenceForm::Ring, SequenceForm::Gather}) {
      if (degrees.sequence > 1) plan.layout.sequence_form = sequence;
      for (const FoldForm fold : {FoldForm::Weights, FoldForm::Activations, FoldForm::Auto}) {
        if (degrees.fold > 1) plan.layout.fold_form = fold;
        try {
          if (memory.peak(plan).total() <= request_.memory_limit) found.push_back(plan.layout);
        } catch (const UsageError&) {
        }
        if (degrees.fold == 1 || (only_first && !found.empty())) break;
      }
      if (degrees.sequence == 1 || (only_first && !found.empty())) break;
    }
    return found;
  }

  /// The largest value from 1 to `limit` that holds for any replica on the whole cluster; what holds for a value holds
  /// for smaller ones. 0: none.
  template <class Holds>
  std::int64_t most(std::int64_t limit, const Holds& holds) const {
    std::int64_t best = 0;
    for (Degrees degrees : replicas_) {
      degrees.data = world_ / degrees.replica();
      if (degrees.data > 1 && !space_.allows(Axis::Data)) continue;
      if (best >= limit) break;
      std::int64_t fits = best + 1;
      if (!holds(degrees, fits)) continue;
      std::int64_t fails = 2 * fits;
      for (; fails <= limit && holds(degrees, fails); fails *= 2) fits = fails;
      fails = std::min(fails, limit + 1);
      while (fails - fits > 1) {
        const std::int64_t middle = fits + (fails - fits) / 2;
        (holds(degrees, middle) ? fits : fails) = middle;
      }
      best = fits;
    }
    return best;
  }

  /// Replicas by any degrees, those of few ranks first, each with the fewest data ranks that do and share out the
  /// batch. More data ranks never need more memory.
  void find_fewest(StrategyReach& reach) const {
    std::vector<Degrees> replicas;
    extend(
        {}, axes_, std::min(world_, kMostRanks), [](int) { return true; }, replicas);
    std::stable_sort(replicas.begin(), replicas.end(),
                     [](const Degrees& a, const Degrees& b) { return a.replica() < b.replica(); });
    std::vector<int> shares;  // of the batch, whole
    for (int ranks = 1; ranks <= (space_.allows(Axis::Data) ? world_ : 1); ++ranks) {
      if (request_.job.batch % ranks == 0) shares.push_back(ranks);
    }
    int fewest = world_ + 1;
    for (Degrees degrees : replicas) {
      const int most = (fewest - 1) / degrees.replica();  // data ranks that would be fewer
      std::vector<int> data;
      for (const int ranks : shares) {
        if (ranks <= most && request_.job.batch / ranks % degrees.expert == 0) data.push_back(ranks);
      }
      const auto first = std::partition_point(data.begin(), data.end(), [&](int ranks) {
        degrees.data = ranks;
        return !fits(degrees, request_.job.sequence_length, 1);
      });
      if (first == data.end()) continue;
      degrees.data = *first;
      const auto priced = priced_if_fits(degrees);
      if (!priced) continue;
      fewest = priced->plan.layout.world_size();
      reach.fewest = priced;
      reach.times = world_ / fewest;
    }
  }

  /// The whole batch, in the fastest form that fits.
  std::optional<PricedPlan> priced_if_fits(const Degrees& degrees) const {
    std::optional<PricedPlan> best;
    for (const Layout& layout : fitting(degrees, request_.job.sequence_length, 1)) {
      try {
        PricedPlan plan = price(request_, {layout, 1, {StashPolicy::Kind::Recompute, {}}});
        const bool is_better = !best || plan.time.total < best->time.total;
        if (is_better && plan.memory.total() <= request_.memory_limit) best = std::move(plan);
      } catch (const UsageError&) {
      }
    }
    return best;
  }

  const PlanRequest& request_;
  const SearchSpace& space_;
  int world_;
  std::vector<Axis> axes_;
  std::vector<Degrees> replicas_;
  std::string name_;
};

}  // namespace

std::vector<StrategyReach> strategy_reach(const PlanRequest& request, const SearchSpace& space) {
  std::vector<std::vector<Axis>> strategies = {{},
                                               {Axis::Tensor},
                                               {Axis::Sequence},
                                               {Axis::Fold},
                                               {Axis::Pipeline},
                                               {Axis::Pipeline, Axis::Tensor},
                                               {Axis::Sequence, Axis::Tensor},
                                               {Axis::Pipeline, Axis::Fold},
                                               {Axis::Sequence, Axis::Fold}};
  if (num_experts(request.model) > 0) strategies.push_back({Axis::Expert});
  std::vector<StrategyReach> found;
  for (const std::vector<Axis>& axes : strategies) {
    if (!std::all_of(axes.begin(), axes.end(), [&](Axis axis) { return space.allows(axis); })) continue;
    StrategyReach reach = Reach(request, space, axes).run();
    if (!reach.name.empty()) found.push_back(std::move(reach));
  }
  return found;
}

}  // namespace octavo
