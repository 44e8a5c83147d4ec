#include <functional>

#include "octavo/plan/advice.h"

namespace octavo {
namespace {

void scale(std::optional<HardwareConstant>& constant, double factor) {
  if (constant) constant->value *= factor;
}

/// Something that may be slower or faster than it is taken to be.
struct Lever {
  Sensitivity::Kind kind;
  const char* what;
  std::function<void(PlanRequest&, bool slower)> pull;
};

double tenth(bool slower) {
  return slower ? 1 / 1.1 : 1.1;
}

Lever hiding(const char* what, double TimeRules::*share) {
  return {Sensitivity::Kind::Hiding, what,
          [share](PlanRequest& request, bool slower) { request.rules.*share = slower ? 1 : 0; }};
}

const std::vector<Lever>& levers() {
  constexpr auto kTenPercent = Sensitivity::Kind::TenPercent;
  static const std::vector<Lever> kLevers = {
      {kTenPercent, "links",
       [](PlanRequest& request, bool slower) {
         Fabric& fabric = request.cluster.accelerator.fabric;
         fabric.bandwidth.value *= tenth(slower);
         fabric.pair_bandwidth.value *= tenth(slower);
         request.cluster.accelerator.network.nic_bits.value *= tenth(slower);
       }},
      {kTenPercent, "latency",
       [](PlanRequest& request, bool slower) {
         FabricTiming& timing = request.cluster.accelerator.timing;
         for (HardwareConstant* latency : {&timing.call_latency, &timing.hop_latency, &timing.small_hop,
                                           &timing.network_hop, &timing.network_small_hop}) {
           latency->value /= tenth(slower);
         }
         scale(timing.switch_latency, 1 / tenth(slower));
       }},
      {kTenPercent, "memory bandwidth",
       [](PlanRequest& request, bool slower) { request.cluster.accelerator.memory_bandwidth.value *= tenth(slower); }},
      {kTenPercent, "once a step",
       [](PlanRequest& request, bool slower) { request.rules.step_latency /= tenth(slower); }},
      {kTenPercent, "matmul and attention rates",
       [](PlanRequest& request, bool slower) {
         request.rules.matmul_share *= tenth(slower);
         request.rules.attention_share *= tenth(slower);
       }},
      hiding("weights and gradients (data, fold)", &TimeRules::data_exposed),
      hiding("keys and values (sequence, fold)", &TimeRules::sequence_exposed),
      hiding("activations (tensor, fold)", &TimeRules::tensor_exposed),
      hiding("borders (pipeline)", &TimeRules::pipeline_exposed),
      hiding("tokens (expert)", &TimeRules::expert_exposed),
  };
  return kLevers;
}

}  // namespace

std::vector<Sensitivity> sensitivities(const PlanRequest& request, const SearchResult& result) {
  std::vector<Sensitivity> found;
  if (result.best.empty()) return found;
  const PricedPlan& first = result.best.front();
  std::vector<const PricedPlan*> others;
  for (const PricedPlan& plan : result.best) others.push_back(&plan);
  for (const PricedPlan& plan : result.front) others.push_back(&plan);
  for (const Lever& lever : levers()) {
    Sensitivity sensitivity{lever.kind, lever.what, 0, 0, {}, {}};
    for (const bool slower : {true, false}) {
      PlanRequest changed = request;
      lever.pull(changed, slower);
      const TimeModel model(changed.model, changed.job, changed.cluster, changed.rules);
      Seconds least = model.step(first.plan).total;
      (slower ? sensitivity.slower : sensitivity.faster) = least / first.time.total - 1;
      const PricedPlan* winner = &first;
      for (const PricedPlan* plan : others) {
        if (plan->time.computing() / tenth(false) >= least) continue;  // no lever makes it faster than that
        const Seconds total = model.step(plan->plan).total;
        if (total >= least) continue;
        least = total;
        winner = plan;
      }
      if (winner == &first) continue;
      (slower ? sensitivity.winner_if_slower : sensitivity.winner_if_faster) = winner->plan.layout.to_string();
    }
    found.push_back(std::move(sensitivity));
  }
  return found;
}

}  // namespace octavo
