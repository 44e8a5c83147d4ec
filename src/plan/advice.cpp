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
        if (!priced || !fits(*priced)) continue;
        const bool is_known = std::any_of(found.begin(), found.end(), [&](const PlanChange& other) {
          return other.plan.plan.layout.to_string() == second.plan.layout.to_string() &&
                 other.plan.plan.micro_batch == second.plan.micro_batch &&
                 other.plan.plan.stash.to_string() == second.plan.stash.to_string();
        });
        if (!is_known) found.push_back({cat(single.what, ", and ", second.what), *priced});
      }
    }
  }
  sort_by_time(found);
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
