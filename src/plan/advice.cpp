#include "octavo/plan/advice.h"

#include <algorithm>
#include <functional>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// A plan, or nothing where it breaks a rule.
std::optional<PricedPlan> price_if_possible(const PlanRequest& request, const StepPlan& plan) {
  try {
    return price(request, plan);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

Layout with_degree(const Layout& layout, Axis axis, int degree) {
  std::vector<AxisSize> sizes;
  bool found = false;
  for (AxisSize entry : layout.mesh.axes()) {
    if (entry.axis == axis) {
      entry.size = degree;
      found = true;
    }
    if (entry.size > 1) sizes.push_back(entry);
  }
  if (!found && degree > 1) sizes.push_back({axis, degree});
  Layout changed = layout;
  changed.mesh = DeviceMesh(std::move(sizes));
  return changed;
}

struct Variant {
  std::string what;
  StepPlan plan;
  int accelerators = 1;  // times as many
};

/// Everything that differs from `plan` in one respect.
class Variants {
 public:
  explicit Variants(const StepPlan& plan) : plan_(plan) {}

  std::vector<Variant> all() {
    stashes();
    if (plan_.micro_batch > 1) {
      for (std::int64_t size = plan_.micro_batch / 2; size >= 1; size /= 2) {
        StepPlan changed = plan_;
        changed.micro_batch = size;
        add(cat("micro-batch ", plan_.micro_batch, " -> ", size), changed);
      }
    }
    zero_stages();
    forms();
    degrees();
    return std::move(found_);
  }

 private:
  void add(const std::string& what, const StepPlan& plan, int accelerators = 1) {
    found_.push_back({what, plan, accelerators});
  }

  void stashes() {
    for (const char* text : {"attention,qkv,gate_up", "attention,qkv", "attention", "recompute"}) {
      StepPlan changed = plan_;
      changed.stash = parse_stash_policy(text);
      if (changed.stash.to_string() == plan_.stash.to_string()) continue;
      add(cat("stash ", plan_.stash.to_string(), " -> ", text), changed);
    }
  }

  void zero_stages() {
    const auto& mesh = plan_.layout.mesh;
    if (mesh.size(Axis::Data) * mesh.size(Axis::Sequence) * mesh.size(Axis::Expert) == 1) return;
    for (const auto& [zero, name] : {std::pair{ZeroStage::Optimizer, "zero1"}, {ZeroStage::Weights, "zero3"}}) {
      if (zero <= plan_.layout.zero) continue;
      StepPlan changed = plan_;
      changed.layout.zero = zero;
      add(name, changed);
    }
  }

  void forms() {
    const auto& mesh = plan_.layout.mesh;
    if (mesh.size(Axis::Tensor) > 1 && plan_.layout.tensor_form == TensorForm::AllReduce) {
      StepPlan changed = plan_;
      changed.layout.tensor_form = TensorForm::Scatter;
      add("tensor:scatter", changed);
    }
    if (mesh.size(Axis::Fold) > 1) {
      for (const auto& [form, name] :
           {std::pair{FoldForm::Weights, "fold:weights"}, {FoldForm::Activations, "fold:activations"}}) {
        if (form == plan_.layout.fold_form) continue;
        StepPlan changed = plan_;
        changed.layout.fold_form = form;
        add(name, changed);
      }
    }
    if (mesh.size(Axis::Sequence) > 1) {
      for (const auto& [form, name] :
           {std::pair{SequenceForm::Ring, "sequence:ring"}, {SequenceForm::Ulysses, "sequence:ulysses"}}) {
        if (form == plan_.layout.sequence_form) continue;
        StepPlan changed = plan_;
        changed.layout.sequence_form = form;
        add(name, changed);
      }
    }
  }

  void degrees() {
    const int data = plan_.layout.mesh.size(Axis::Data);
    for (const Axis axis : {Axis::Fold, Axis::Tensor, Axis::Sequence, Axis::Pipeline}) {
      const int degree = plan_.layout.mesh.size(axis);
      StepPlan changed = plan_;
      changed.layout = with_degree(plan_.layout, axis, 2 * degree);
      const std::string what = cat(axis_name(axis), "=", degree, " -> ", 2 * degree);
      if (data % 2 == 0) {
        changed.layout = with_degree(changed.layout, Axis::Data, data / 2);
        add(cat(what, " with data=", data / 2), changed);
      } else {
        add(cat(what, ", twice the accelerators"), changed, 2);
      }
    }
    StepPlan changed = plan_;
    changed.layout = with_degree(plan_.layout, Axis::Data, 2 * data);
    add(cat("data=", data, " -> ", 2 * data, ", twice the accelerators"), changed, 2);
  }

  const StepPlan& plan_;
  std::vector<Variant> found_;
};

void sort_by_time(std::vector<PlanChange>& changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const PlanChange& a, const PlanChange& b) { return a.plan.time.total < b.plan.time.total; });
}

PlanRequest with_accelerators(const PlanRequest& request, int times) {
  PlanRequest larger = request;
  larger.cluster.num_nodes *= times;
  return larger;
}

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

void scale(std::optional<HardwareConstant>& constant, double factor) {
  if (constant) constant->value *= factor;
}

/// What is made `factor` times as fast.
struct Lever {
  const char* what;
  std::function<void(PlanRequest&, double factor)> pull;
};

const std::vector<Lever>& levers() {
  static const std::vector<Lever> kLevers = {
      {"links",
       [](PlanRequest& request, double factor) {
         Fabric& fabric = request.cluster.accelerator.fabric;
         fabric.bandwidth.value *= factor;
         fabric.pair_bandwidth.value *= factor;
         request.cluster.accelerator.network.nic_bits.value *= factor;
       }},
      {"latency",
       [](PlanRequest& request, double factor) {
         FabricTiming& timing = request.cluster.accelerator.timing;
         for (HardwareConstant* latency : {&timing.call_latency, &timing.hop_latency, &timing.small_hop,
                                           &timing.network_hop, &timing.network_small_hop}) {
           latency->value /= factor;
         }
         scale(timing.switch_latency, 1 / factor);
       }},
      {"memory bandwidth",
       [](PlanRequest& request, double factor) { request.cluster.accelerator.memory_bandwidth.value *= factor; }},
      {"matmul rate",
       [](PlanRequest& request, double factor) {
         request.rules.matmul_share *= factor;
         request.rules.attention_share *= factor;
       }},
  };
  return kLevers;
}

}  // namespace

std::vector<PlanChange> smallest_changes(const PlanRequest& request, const StepPlan& wanted) {
  const auto fits = [&](const PricedPlan& plan) { return plan.memory.total() <= request.memory_limit; };
  if (const auto priced = price_if_possible(request, wanted); priced && fits(*priced)) return {};
  std::vector<PlanChange> found;
  const std::vector<Variant> singles = Variants(wanted).all();
  for (const Variant& single : singles) {
    const auto priced = price_if_possible(with_accelerators(request, single.accelerators), single.plan);
    if (priced && fits(*priced)) found.push_back({single.what, *priced});
  }
  if (found.empty()) {
    for (const Variant& single : singles) {
      for (const Variant& second : Variants(single.plan).all()) {
        const int accelerators = single.accelerators * second.accelerators;
        const auto priced = price_if_possible(with_accelerators(request, accelerators), second.plan);
        if (priced && fits(*priced)) found.push_back({cat(single.what, ", and ", second.what), *priced});
      }
    }
  }
  sort_by_time(found);
  return found;
}

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

std::vector<Sensitivity> sensitivities(const PlanRequest& request, const SearchResult& result) {
  constexpr double kStep = 0.1;
  std::vector<Sensitivity> found;
  if (result.best.empty()) return found;
  std::vector<const PricedPlan*> plans;
  for (const PricedPlan& plan : result.best) plans.push_back(&plan);
  for (const PricedPlan& plan : result.front) plans.push_back(&plan);
  for (const StrategyBest& strategy : result.strategies) plans.push_back(&strategy.plan);
  for (const Lever& lever : levers()) {
    Sensitivity sensitivity{.what = lever.what, .slower = 0, .faster = 0, .other_winner = {}};
    for (const double factor : {1 / (1 + kStep), 1 + kStep}) {
      PlanRequest changed = request;
      lever.pull(changed, factor);
      const TimeModel model(changed.model, changed.job, changed.cluster, changed.rules);
      const Seconds first = model.step(plans.front()->plan).total;
      (factor < 1 ? sensitivity.slower : sensitivity.faster) = first / plans.front()->time.total - 1;
      const PricedPlan* winner = plans.front();
      Seconds least = first;
      for (const PricedPlan* plan : plans) {
        const Seconds total = model.step(plan->plan).total;
        if (total >= least) continue;
        least = total;
        winner = plan;
      }
      if (winner != plans.front()) sensitivity.other_winner = winner->plan.layout.to_string();
    }
    found.push_back(std::move(sensitivity));
  }
  return found;
}

std::vector<LengthWinner> winners_by_length(const PlanRequest& request, const SearchSpace& space,
                                            std::span<const std::int64_t> lengths) {
  const std::int64_t tokens = request.job.sequence_length * request.job.batch;
  std::vector<LengthWinner> winners;
  for (const std::int64_t length : lengths) {
    LengthWinner winner{length, std::nullopt};
    PlanRequest changed = request;
    changed.job.sequence_length = length;
    changed.job.batch = length >= 1 ? tokens / length : 0;
    if (changed.job.batch >= 1) {
      SearchResult found = search(changed, space);
      if (!found.best.empty()) winner.plan = std::move(found.best.front());
    }
    winners.push_back(std::move(winner));
  }
  return winners;
}

Confidence confidence(const PlanRequest& request, const SearchResult& result) {
  Confidence found{.error = request.rules.mean_error, .least = 0, .most = 0};
  if (result.best.empty()) return found;
  const Seconds first = result.best.front().time.total;
  found.least = first * (1 - found.error);
  found.most = first * (1 + found.error);
  for (const PricedPlan& plan : result.best)
    found.not_told_apart += plan.time.total <= found.most && &plan != &result.best.front();
  return found;
}

}  // namespace octavo
