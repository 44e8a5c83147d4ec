#include "octavo/plan/advice.h"

#include <algorithm>

#include "octavo/spec/parameters.h"

namespace octavo {
namespace {

std::optional<PricedPlan> fastest(const PlanRequest& request, const SearchSpace& space) {
  SearchResult found = search(request, space);
  if (found.best.empty()) return std::nullopt;
  return std::move(found.best.front());
}

}  // namespace

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
      winner.plan = fastest(changed, space);
    }
    winners.push_back(std::move(winner));
  }
  return winners;
}

std::vector<SizeWinner> winners_by_nodes(const PlanRequest& request, const SearchSpace& space,
                                         std::span<const int> num_nodes) {
  std::vector<SizeWinner> winners;
  for (const int count : num_nodes) {
    PlanRequest changed = request;
    changed.cluster.num_nodes = count;
    winners.push_back({count, fastest(changed, space)});
  }
  return winners;
}

Confidence confidence(const PlanRequest& request, const Layout& layout) {
  const TimeRules& rules = request.rules;
  Confidence found{rules.mean_error, rules.left_out_error, rules.largest_error, beyond_runs(rules, layout), 0};
  const auto beyond = [&found](bool is_so, const char* what) {
    if (is_so) found.beyond.emplace_back(what);
  };
  const auto& layers = request.model.layers;
  beyond(std::any_of(layers.begin(), layers.end(),
                     [](const LayerSpec& layer) { return std::holds_alternative<DeltaNetSpec>(layer.mixer); }),
         "DeltaNet layers");
  beyond(num_experts(request.model) > 0, "a model with experts");
  beyond(request.job.compute != ElementType::BFloat16, "fp32");
  beyond(!request.cluster.changes().empty(), "the cluster file's constants");
  return found;
}

Confidence confidence(const PlanRequest& request, const SearchResult& result) {
  if (result.best.empty()) return {};
  const PricedPlan& first = result.best.front();
  Confidence found = confidence(request, first.plan.layout);
  for (const PricedPlan& plan : result.best) {
    found.as_fast += &plan != &first && plan.time.total <= first.time.total * (1 + found.likely_error());
  }
  return found;
}

}  // namespace octavo
