#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/plan/advice.h"

namespace octavo {
namespace {

/// Degrees of a strategy's axes, data apart.
struct Model {
  int pipeline = 1, expert = 1, sequence = 1, fold = 1, tensor = 1;
  int product() const { return pipeline * expert * sequence * fold * tensor; }
};

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
    reach.largest_micro_batch = most(1, kMostSequences, [&](const Model& model, std::int64_t size) {
      return fits(model, world_ / model.product(), request_.job.sequence_length, size);
    });
    reach.longest_sequence = kTokens * most(1, kMostTokens / kTokens, [&](const Model& model, std::int64_t length) {
                               return fits(model, world_ / model.product(), length * kTokens, 1);
                             });
    find_fewest(reach);
    return reach;
  }

 private:
  static constexpr std::int64_t kMostSequences = 1 << 16, kTokens = 1024, kMostTokens = std::int64_t{1} << 27;

  void extend(Model model, std::span<const Axis> axes) {
    if (axes.empty()) {
      models_.push_back(model);
      Layout layout = layout_of(model, 1);
      if (name_.empty()) name_ = strategy_name(layout);
      return;
    }
    for (const int degree : divisors_) {
      if (degree == 1 || model.product() * std::int64_t{1} * degree > world_ ||
          world_ % (model.product() * degree) != 0)
        continue;
      Model next = model;
      switch (axes.front()) {
        case Axis::Pipeline:
          next.pipeline = degree;
          break;
        case Axis::Expert:
          next.expert = degree;
          break;
        case Axis::Sequence:
          next.sequence = degree;
          break;
        case Axis::Fold:
          next.fold = degree;
          break;
        case Axis::Tensor:
          next.tensor = degree;
          break;
        case Axis::Data:
          throw InternalError("[plan] data belongs to every strategy");
      }
      extend(next, axes.subspan(1));
    }
  }

  static Layout layout_of(const Model& model, int data) {
    std::vector<AxisSize> sizes;
    for (const auto& [axis, size] : {std::pair{Axis::Pipeline, model.pipeline},
                                     {Axis::Data, data},
                                     {Axis::Expert, model.expert},
                                     {Axis::Sequence, model.sequence},
                                     {Axis::Fold, model.fold},
                                     {Axis::Tensor, model.tensor}}) {
      if (size > 1) sizes.push_back({axis, size});
    }
    Layout layout;
    layout.mesh = DeviceMesh(std::move(sizes));
    layout.zero = data * model.expert * model.sequence > 1 ? ZeroStage::Weights : ZeroStage::None;
    layout.misfit = Misfit::Replicate;
    return layout;
  }

  /// In any form, everything recomputed; one micro-batch per stage.
  bool fits(const Model& model, int data, std::int64_t length, std::int64_t micro_batch) const {
    const auto layers = static_cast<int>(request_.model.layers.size());
    if (model.pipeline > layers) return false;
    if (model.sequence * model.fold > 1 && length < 2 * model.sequence * model.fold) return false;
    const TrainingJob job{length, micro_batch * data * model.expert * model.pipeline, request_.job.compute};
    const MemoryModel memory(request_.model, job);
    StepPlan plan{layout_of(model, data), micro_batch, {StashPolicy::Kind::Recompute, {}}};
    for (const TensorForm tensor : {TensorForm::Scatter, TensorForm::AllReduce}) {
      if (tensor == TensorForm::AllReduce && model.tensor > 1) break;  // holds as many tokens or more
      plan.layout.tensor_form = tensor;
      for (const SequenceForm sequence : {SequenceForm::Ring, SequenceForm::Gather}) {
        plan.layout.sequence_form = sequence;
        for (const FoldForm fold : {FoldForm::Weights, FoldForm::Activations}) {
          plan.layout.fold_form = fold;
          try {
            if (memory.peak(plan).total() <= request_.memory_limit) return true;
          } catch (const UsageError&) {
          }
          if (model.fold == 1) break;
        }
        if (model.sequence == 1) break;
      }
    }
    return false;
  }

  /// The largest value of any degrees that holds; what holds for a value holds for smaller ones. 0: none.
  template <class Holds>
  std::int64_t most(std::int64_t least, std::int64_t limit, const Holds& holds) const {
    std::int64_t best = 0;
    for (const Model& model : models_) {
      if (!holds(model, std::max(best + 1, least))) continue;
      std::int64_t fits = std::max(best + 1, least), fails = fits;
      while (fails <= limit && holds(model, fails)) {
        fits = fails;
        fails *= 2;
      }
      fails = std::min(fails, limit + 1);
      while (fails - fits > 1) {
        const std::int64_t middle = fits + (fails - fits) / 2;
        (holds(model, middle) ? fits : fails) = middle;
      }
      best = fits;
    }
    return best;
  }

  void find_fewest(StrategyReach& reach) const {
    const bool only_data = models_.size() == 1 && models_.front().product() == 1;
    const auto take = [&](const Model& model, int data) {
      const int accelerators = model.product() * data;
      if (reach.fewest_accelerators && accelerators >= *reach.fewest_accelerators) return;
      if (!fits(model, data, request_.job.sequence_length, 1)) return;
      reach.fewest_accelerators = accelerators;
      reach.data_degree = only_data ? world_ : world_ / accelerators;
    };
    if (only_data) {
      for (const int data : divisors_) take(models_.front(), data);
    } else {
      for (const Model& model : models_) take(model, 1);
    }
  }

  const PlanRequest& request_;
  int world_;
  std::vector<int> divisors_;
  std::vector<Model> models_;
  std::string name_;
};

bool has_experts(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerSpec& layer) { return std::holds_alternative<MoeSpec>(layer.ffn); });
}

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
  if (has_experts(request.model)) strategies.push_back({Axis::Expert});
  std::vector<StrategyReach> found;
  for (const std::vector<Axis>& axes : strategies) {
    StrategyReach reach = Reach(request, axes).run();
    if (!reach.name.empty()) found.push_back(std::move(reach));
  }
  return found;
}

}  // namespace octavo
