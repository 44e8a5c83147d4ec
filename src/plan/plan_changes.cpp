#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/advice.h"

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
    forms_of(Axis::Tensor, &Layout::tensor_form, {{TensorForm::Scatter, "tensor:scatter"}});
    forms_of(Axis::Fold, &Layout::fold_form,
             {{FoldForm::Weights, "fold:weights"}, {FoldForm::Activations, "fold:activations"}});
    forms_of(Axis::Sequence, &Layout::sequence_form,
             {{SequenceForm::Ring, "sequence:ring"}, {SequenceForm::Ulysses, "sequence:ulysses"}});
  }

  template <class Form>
  void forms_of(Axis axis, Form Layout::*member, std::initializer_list<std::pair<Form, const char*>> others) {
    if (plan_.layout.mesh.size(axis) == 1) return;
    for (const auto& [form, name] : others) {
      if (form == plan_.layout.*member) continue;
      StepPlan changed = plan_;
      changed.layout.*member = form;
      add(name, changed);
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

/// No axis grows that the space leaves out, and what is to run still runs.
bool is_within(const SearchSpace& space, const Layout& wanted, const Layout& changed) {
  for (const Axis axis : kAllAxes) {
    if (!space.allows(axis) && changed.mesh.size(axis) > wanted.mesh.size(axis)) return false;
  }
  const bool is_zero_new = changed.zero != wanted.zero, is_schedule_new = changed.pipeline_form != wanted.pipeline_form;
  if ((is_zero_new && !space.allows(changed.zero)) || (is_schedule_new && !space.allows(changed.pipeline_form))) {
    return false;
  }
  if (!space.runnable) return true;
  try {
    check_runnable(changed);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

PlanRequest with_accelerators(const PlanRequest& request, int times) {
  PlanRequest larger = request;
  larger.cluster.num_nodes *= times;
  return larger;
}

}  // namespace

std::vector<PlanChange> smallest_changes(const PlanRequest& request, const StepPlan& wanted, const SearchSpace& space) {
  const auto fitting = [&](const Variant& variant, int accelerators) -> std::optional<PricedPlan> {
    if (!is_within(space, wanted.layout, variant.plan.layout)) return std::nullopt;
    auto priced = price_if_possible(with_accelerators(request, accelerators), variant.plan);
    if (!priced || priced->memory.total() > request.memory_limit) return std::nullopt;
    return priced;
  };
  if (fitting({"", wanted}, 1)) return {};
  std::vector<PlanChange> found;
  const std::vector<Variant> singles = Variants(wanted).all();
  for (const Variant& single : singles) {
    if (const auto priced = fitting(single, single.accelerators)) found.push_back({single.what, *priced});
  }
  if (found.empty()) {
    for (const Variant& single : singles) {
      for (const Variant& second : Variants(single.plan).all()) {
        const auto priced = fitting(second, single.accelerators * second.accelerators);
        if (!priced) continue;
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

}  // namespace octavo
