#include "octavo/plan/strategy_steps.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/audit_dimensions.h"
#include "plan/plan_space.h"

namespace octavo {

std::vector<ComparedLayout> compared_layouts(const ModelSpec& model, int ranks) {
  if (ranks < 2) throw UsageError(cat("[plan] a comparison over ", ranks, " ranks; use 2 or more"));
  std::vector<ComparedLayout> found;
  const auto misfit = [&](int tensor) { return tensor_fit(model, tensor).failing.empty() ? "" : ":replicate"; };
  const auto add = [&](const StrategyRanks& of, const std::string& text) { found.push_back({of, parse_layout(text)}); };
  // With a sequence axis; `zero` cuts what its ranks hold alike, `form` is the tensor axis'.
  const auto add_sequences = [&](const char* zero) {
    add(on_ranks(Strategy::SequenceGather, ranks), cat(zero, "sequence=", ranks, ":gather"));
    add(on_ranks(Strategy::SequenceRing, ranks), cat(zero, "sequence=", ranks, ":ring"));
    add(on_ranks(Strategy::SequenceUlysses, ranks), cat(zero, "sequence=", ranks, ":ulysses"));
  };
  const auto add_mixes = [&](const char* zero, const char* form) {
    for (int tensor = 2; tensor < ranks; ++tensor) {
      if (ranks % tensor != 0) continue;
      const int sequence = ranks / tensor;
      add({Strategy::TensorSequence, tensor, sequence},
          cat(zero, "sequence=", sequence, ":gather tensor=", tensor, form, misfit(tensor)));
    }
  };
  constexpr const char* kZero3 = "data=1:zero3 ";
  add(on_ranks(Strategy::Data, ranks), cat("data=", ranks, ":zero3"));
  add(on_ranks(Strategy::Tensor, ranks), cat("tensor=", ranks, misfit(ranks)));
  add(on_ranks(Strategy::TensorScatter, ranks), cat("tensor=", ranks, ":scatter", misfit(ranks)));
  add_sequences("");
  add_mixes("", "");
  add(on_ranks(Strategy::Fold, ranks), cat("fold=", ranks, ":weights"));
  add(on_ranks(Strategy::Fold, ranks), cat("fold=", ranks, ":activations"));
  add_sequences(kZero3);
  add_mixes(kZero3, ":scatter");
  return found;
}

StrategyStep strategy_step(const PlanRequest& request, const Layout& layout, const StashPolicy& stash) {
  const std::int64_t share = std::max<std::int64_t>(1, request.job.batch / layout.mesh.size(Axis::Data));
  const StepPlan plan{.layout = layout, .micro_batch = share, .stash = stash};
  const SearchSpace all;
  if (const auto broken = PlanSpace(request, all).broken(plan)) return {std::nullopt, broken->text};
  return {price(request, plan), ""};
}

std::vector<std::size_t> time_memory_front(std::span<const StrategyStep> steps, Bytes limit) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].priced && steps[i].priced->memory.total() <= limit) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const PricedPlan &left = *steps[a].priced, &right = *steps[b].priced;
    if (left.time.total != right.time.total) return left.time.total < right.time.total;
    return left.memory.total() < right.memory.total();
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const bool is_leaner =
        front.empty() || steps[i].priced->memory.total() < steps[front.back()].priced->memory.total();
    if (is_leaner) front.push_back(i);
  }
  return front;
}

}  // namespace octavo
