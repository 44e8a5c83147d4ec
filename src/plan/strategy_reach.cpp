#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/plan/advice.h"
#include "octavo/spec/parameters.h"
#include "plan/plan_space.h"

namespace octavo {
namespace {

/// One strategy. Its replicas are degrees of its axes, with data=1.
class Reach {
 public:
  Reach(const PlanRequest& request, std::span<const Axis> axes)
      : request_(request), world_(request.cluster.world_size()) {
    for (int degree = 1; degree <= world_; ++degree) {
      if (world_ % degree == 0) divisors_.push_back(degree);
    }
    extend({}, axes);
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
  static constexpr std::int64_t kMostSequences = 1 << 16, kTokens = 1024, kMostTokens = std::int64_t{1} << 27;

  void extend(const Degrees& degrees, std::span<const Axis> axes) {
    if (axes.empty()) {
      replicas_.push_back(degrees);
      if (name_.empty()) name_ = strategy_name(layout_of(degrees));
      return;
    }
    internal_check(axes.front() != Axis::Data, "[plan] data belongs to every strategy");
    for (const int degree : divisors_) {
      const std::int64_t ranks = std::int64_t{degrees.replica()} * degree;
      if (degree == 1 || ranks > world_ || world_ % ranks != 0) continue;
      Degrees next = degrees;
      next.of(axes.front()) = degree;
      extend(next, axes.subspan(1));
    }
  }

  static Layout layout_of(const Degrees& degrees) {
    Layout layout;
    layout.mesh = mesh_of(degrees);
    layout.zero = degrees.copies() > 1 ? ZeroStage::Weights : ZeroStage::None;
    layout.misfit = Misfit::Replicate;
    return layout;
  }

  /// In any form, everything recomputed; one micro-batch per stage.
  bool fits(const Degrees& degrees, std::int64_t length, std::int64_t micro_batch) const {
    const auto layers = static_cast<int>(request_.model.layers.size());
    if (degrees.pipeline > layers) return false;
    if (degrees.sequence * degrees.fold > 1 && length < 2 * degrees.sequence * degrees.fold) return false;
    const TrainingJob job{length, micro_batch * degrees.data * degrees.expert * degrees.pipeline, request_.job.compute};
    const MemoryModel memory(request_.model, job);
    StepPlan plan{layout_of(degrees), micro_batch, {StashPolicy::Kind::Recompute, {}}};
    plan.layout.tensor_form = TensorForm::Scatter;  // holds as few tokens as all-reduce or fewer
    for (const SequenceForm sequence : {SequenceForm::Ring, SequenceForm::Gather}) {
      plan.layout.sequence_form = sequence;
      for (const FoldForm fold : {FoldForm::Weights, FoldForm::Activations}) {
        plan.layout.fold_form = fold;
        try {
          if (memory.peak(plan).total() <= request_.memory_limit) return true;
        } catch (const UsageError&) {
        }
        if (degrees.fold == 1) break;
      }
      if (degrees.sequence == 1) break;
    }
    return false;
  }

  /// The largest value from 1 to `limit` that holds for any replica on the whole cluster; what holds for a value holds
  /// for smaller ones. 0: none.
  template <class Holds>
  std::int64_t most(std::int64_t limit, const Holds& holds) const {
    std::int64_t best = 0;
    for (Degrees degrees : replicas_) {
      degrees.data = world_ / degrees.replica();
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

  void find_fewest(StrategyReach& reach) const {
    const bool only_data = replicas_.size() == 1 && replicas_.front().replica() == 1;
    const auto take = [&](const Degrees& degrees) {
      const int accelerators = degrees.replica() * degrees.data;
      if (reach.fewest_accelerators && accelerators >= *reach.fewest_accelerators) return;
      if (!fits(degrees, request_.job.sequence_length, 1)) return;
      reach.fewest_accelerators = accelerators;
      reach.data_degree = only_data ? world_ : world_ / accelerators;
    };
    if (only_data) {
      for (const int data : divisors_) take({.data = data});
    } else {
      for (const Degrees& degrees : replicas_) take(degrees);
    }
  }

  const PlanRequest& request_;
  int world_;
  std::vector<int> divisors_;
  std::vector<Degrees> replicas_;
  std::string name_;
};

}  // namespace

std::vector<StrategyReach> strategy_reach(const PlanRequest& request) {
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
    StrategyReach reach = Reach(request, axes).run();
    if (!reach.name.empty()) found.push_back(std::move(reach));
  }
  return found;
}

}  // namespace octavo
