#include "octavo/plan/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "plan/axis_traffic.h"
#include "plan/best_plans.h"
#include "plan/plan_space.h"

namespace octavo {
namespace {

/// Where all micro-batches are in flight, a larger one saves what is kept between stages of the smaller: less than
/// this.
constexpr double kFarAbove = 1.05;

/// What the searching threads share and do not change.
struct Models {
  Models(const PlanRequest& request_in, const SearchSpace& space_in)
      : request(request_in),
        space(space_in),
        memory(request_in.model, request_in.job),
        time(request_in.model, request_in.job, request_in.cluster, request_in.rules) {}
  const PlanRequest& request;
  const SearchSpace& space;
  MemoryModel memory;
  TimeModel time;
};

/// One thread's part of a search.
class Searcher {
 public:
  explicit Searcher(const Models& models)
      : models_(models), space_(models.request, models.space), stashes_(space_.stashes()) {}

  void visit(const Degrees& degrees, std::int64_t place) {
    set_options(degrees);
    StepPlan plan;
    stash_ = stashes_.size();  // none yet
    plan.layout.mesh = orders_.front();
    best.begin(place, strategy_name(plan.layout));
    const std::size_t per_form = per_size() * micro_batches_.size() * pipelines_.size();
    if (const auto broken = space_.broken(degrees)) {
      const std::size_t forms = tensors_.size() * sequences_.size() * folds_.size();
      rule_out(*broken, per_size() * std::max<std::size_t>(micro_batches_.size(), 1) * pipelines_.size() * forms);
      return;
    }
    if (micro_batches_.empty()) {
      const std::size_t forms = tensors_.size() * sequences_.size() * folds_.size();
      best.rule_out(Rule::Batch, per_size() * pipelines_.size() * forms,
                    [] { return std::string("the micro-batch exceeds a rank's share"); });
      return;
    }
    for (const DeviceMesh& order : orders_) groups_.emplace_back(order, models_.request.cluster);
    schedules_.clear();
    for (const PipelineOption& pipeline : pipelines_) {
      for (const std::int64_t size : micro_batches_) schedules_.push_back(space_.broken(degrees, pipeline, size));
    }
    for (const TensorOption& tensor : tensors_) {
      if (tensor.broken) {
        rule_out(*tensor.broken, per_form * sequences_.size() * folds_.size());
        continue;
      }
      plan.layout.tensor_form = tensor.form;
      plan.layout.misfit = tensor.misfit;
      for (const SequenceOption& sequence : sequences_) {
        if (sequence.broken) {
          rule_out(*sequence.broken, per_form * folds_.size());
          continue;
        }
        plan.layout.sequence_form = sequence.form;
        for (const FoldForm fold : folds_) {
          plan.layout.fold_form = fold;
          visit_schedules(plan);
        }
      }
    }
    best.end();
  }

  BestPlans best;

 private:
  /// Layouts per micro-batch.
  std::size_t per_size() const { return orders_.size() * zero_.size() * stashes_.size(); }

  void rule_out(const Broken& broken, std::size_t layouts) {
    best.rule_out(broken.rule, layouts, [&] { return broken.text; });
  }

  void set_options(const Degrees& degrees) {
    orders_ = space_.orders(degrees);
    groups_.clear();
    zero_ = space_.zero(degrees);
    micro_batches_ = space_.micro_batches(degrees);
    pipelines_ = space_.pipeline(degrees);
    tensors_ = space_.tensor(degrees);
    sequences_ = space_.sequence(degrees);
    folds_ = space_.fold(degrees);
  }

  void visit_schedules(StepPlan& plan) {
    parts_.assign(micro_batches_.size() * stashes_.size() * orders_.size(), nullptr);
    for (std::size_t pipeline = 0; pipeline < pipelines_.size(); ++pipeline) {
      plan.layout.pipeline_form = pipelines_[pipeline].form;
      plan.layout.virtual_stages = pipelines_[pipeline].virtual_stages;
      too_large_.assign(zero_.size() * stashes_.size(), false);
      for (std::size_t micro = 0; micro < micro_batches_.size(); ++micro) {
        plan.micro_batch = micro_batches_[micro];
        if (const auto& broken = schedules_[pipeline * micro_batches_.size() + micro]) {
          rule_out(*broken, per_size());
          continue;
        }
        std::size_t fits_zero1 = stashes_.size();  // the first policy that does
        for (std::size_t zero = 0; zero < zero_.size(); ++zero) {
          plan.layout.zero = zero_[zero];
          const std::size_t first = visit_stashes(plan, micro, zero, fits_zero1);
          if (zero_[zero] == ZeroStage::Optimizer) fits_zero1 = first;
        }
      }
    }
  }

  /// Prices the first stash policy that fits and returns its index.
  std::size_t visit_stashes(StepPlan& plan, std::size_t micro, std::size_t zero, std::size_t fits_zero1) {
    for (std::size_t i = 0; i < stashes_.size(); ++i) {
      const std::size_t behind = (stashes_.size() - i) * orders_.size();
      if (plan.layout.zero == ZeroStage::None && i >= fits_zero1) {
        best.rule_out(Rule::Dominated, behind, [] { return std::string("zero0 where zero1 fits"); });
        return i;
      }
      std::vector<bool>::reference too_large = too_large_[zero * stashes_.size() + i];
      // At a smaller micro-batch already; or zero1, which comes first in the list and holds less.
      if (too_large || (plan.layout.zero == ZeroStage::None && zero_.front() == ZeroStage::Optimizer)) {
        best.rule_out(Rule::Memory, orders_.size(), [] { return std::string(); });
        continue;
      }
      if (stash_ != i) plan.stash = stashes_[stash_ = i];
      const MemoryEstimate memory = models_.memory.peak(plan);
      const Bytes limit = models_.request.memory_limit;
      if (memory.total() > limit) {
        too_large = static_cast<double>(memory.total()) > kFarAbove * static_cast<double>(limit);
        best.rule_out(Rule::Memory, orders_.size(), [&] {
          return cat("\"", plan.layout.to_string(), "\", micro-batch ", plan.micro_batch, ", stash ",
                     plan.stash.to_string(), ": ", memory.to_string());
        });
        continue;
      }
      price(plan, memory, (micro * stashes_.size() + i) * orders_.size());
      best.rule_out(Rule::Dominated, behind - orders_.size(), [&] {
        return cat("stash policies that compute more again than ", stashes_[i].to_string(), ", which fits");
      });
      return i;
    }
    return stashes_.size();
  }

  void price(StepPlan& plan, const MemoryEstimate& memory, std::size_t first_part) {
    for (std::size_t order = 0; order < orders_.size(); ++order) {
      if (order > 0) plan.layout.mesh = orders_[order];
      std::shared_ptr<const StepParts>& parts = parts_[first_part + order];
      if (!parts) parts = models_.time.parts(plan, groups_[order]);
      const StepTime time = models_.time.step(plan, groups_[order], *parts);
      best.offer(plan, memory, time);
      // Other orders have other links, and compute the same.
      const std::size_t others = orders_.size() - order - 1;
      if (others > 0 && best.has_better(time.computing(), memory)) {
        best.rule_out(Rule::Dominated, others, [] {
          return std::string("orders of axes that compute longer than a plan of the same degrees takes");
        });
        break;
      }
    }
    if (orders_.size() > 1) plan.layout.mesh = orders_.front();
  }

  const Models& models_;
  PlanSpace space_;
  std::vector<StashPolicy> stashes_;

  std::size_t stash_ = 0;  // that the plan at hand has

  // Of the degrees that are visited
  std::vector<DeviceMesh> orders_;
  std::vector<AxisGroups> groups_;  // of each order
  std::vector<ZeroStage> zero_;
  std::vector<std::int64_t> micro_batches_;
  std::vector<PipelineOption> pipelines_;
  std::vector<std::optional<Broken>> schedules_;  // what each pipeline option breaks with each micro-batch
  std::vector<TensorOption> tensors_;
  std::vector<SequenceOption> sequences_;
  std::vector<FoldForm> folds_;
  // Of the forms
  std::vector<std::shared_ptr<const StepParts>> parts_;  // by micro-batch, stash policy and order, as they are needed
  std::vector<bool> too_large_;                          // by ZeRO stage and stash policy, at the micro-batches so far
};

struct RuleWords {
  std::string_view name, text;
};
constexpr std::array<RuleWords, kNumRules> kRules = {{
    {"layers", "more stages than layers"},
    {"experts", "experts do not divide"},
    {"batch", "the batch does not share out"},
    {"tokens", "ranks without tokens"},
    {"units", "tensor does not divide a dimension"},
    {"heads", "ulysses does not divide heads"},
    {"schedule", "the schedule needs other micro-batches"},
    {"dominated", "a like one that fits computes no more"},
    {"memory", "the peak exceeds the memory"},
}};

}  // namespace

bool SearchSpace::allows(Axis axis) const {
  const bool runs = !runnable || axis == Axis::Data || axis == Axis::Fold || axis == Axis::Tensor;
  return runs && axes[static_cast<std::size_t>(axis)];
}

bool SearchSpace::allows(ZeroStage stage) const {
  const bool runs = !runnable || stage != ZeroStage::Weights;
  return runs && (zero.empty() || std::find(zero.begin(), zero.end(), stage) != zero.end());
}

bool SearchSpace::allows(PipelineForm schedule) const {
  return schedules.empty() || std::find(schedules.begin(), schedules.end(), schedule) != schedules.end();
}

Bytes default_memory_limit(const Cluster& cluster) {
  return static_cast<Bytes>(kUsableMemory * cluster.accelerator.memory_bytes.value);
}

std::string_view rule_name(Rule rule) {
  return kRules[static_cast<std::size_t>(rule)].name;
}

std::string_view rule_text(Rule rule) {
  return kRules[static_cast<std::size_t>(rule)].text;
}

SearchResult search(const PlanRequest& request, const SearchSpace& space) {
  if (request.memory_limit < 1) {
    throw UsageError(cat("[plan] a memory limit of ", request.memory_limit, " B; use at least 1 B"));
  }
  const auto begin = std::chrono::steady_clock::now();
  const Models models(request, space);
  const std::vector<Degrees> degrees = PlanSpace(request, space).degrees();
  const std::size_t num_threads =
      std::clamp<std::size_t>(space.threads > 0 ? space.threads : std::thread::hardware_concurrency(), 1, 64);
  std::vector<Searcher> searchers(num_threads, Searcher(models));
  std::vector<std::exception_ptr> errors(num_threads);
  std::atomic<std::size_t> next = 0;
  const auto run = [&](std::size_t thread) {
    try {
      for (std::size_t i = next++; i < degrees.size(); i = next++) {
        searchers[thread].visit(degrees[i], static_cast<std::int64_t>(i));
      }
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 1; thread < num_threads; ++thread) threads.emplace_back(run, thread);
    run(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  BestPlans all = std::move(searchers[0].best);
  for (std::size_t thread = 1; thread < num_threads; ++thread) all.merge(std::move(searchers[thread].best));
  SearchResult result = all.result();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

PricedPlan price(const PlanRequest& request, const StepPlan& plan) {
  if (plan.layout.world_size() > request.cluster.world_size()) {
    throw UsageError(cat("[plan] \"", plan.layout.to_string(), "\" has ", plan.layout.world_size(), " ranks, and ",
                         request.cluster.to_string(), " has ", request.cluster.world_size(), " accelerators"));
  }
  const SearchSpace all;
  if (const auto broken = PlanSpace(request, all).broken(plan)) {
    throw UsageError(cat("[plan] \"", plan.layout.to_string(), "\": ", rule_text(broken->rule), ": ", broken->text));
  }
  return {plan, MemoryModel(request.model, request.job).peak(plan),
          TimeModel(request.model, request.job, request.cluster, request.rules).step(plan)};
}

std::string strategy_name(const Layout& layout) {
  std::vector<std::string> parts;
  for (const Axis axis : kAllAxes) {
    if (axis != Axis::Data && layout.mesh.size(axis) > 1) parts.emplace_back(axis_name(axis));
  }
  return parts.empty() ? "data" : join(parts, " + ");
}

}  // namespace octavo
