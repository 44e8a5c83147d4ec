#include <nlohmann/json.hpp>

#include "cli/core/compare_report.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

json strategy_json(const CompareReport& report, const StrategyRanks& ranks, std::int64_t sequence_length) {
  const StrategyLayer& layer = *report.layer;
  const auto length = static_cast<double>(sequence_length);
  const double tokens = length * static_cast<double>(report.request.job.batch);
  const auto bytes = static_cast<double>(element_bytes(report.request.job.compute));
  const StrategyTraffic sent = strategy_traffic(layer, ranks, tokens);
  const StrategyMemory held = strategy_memory(layer, ranks, tokens);
  const StrategyFlops flops = strategy_flops(layer, ranks.all(), tokens, length);
  const bool shares = has_share(report, ranks);
  return {{"strategy", strategy_label(ranks)},
          {"forward_elements", sent.forward},
          {"backward_elements", sent.backward},
          {"inputs_again_elements", sent.inputs_again},
          {"once_a_step_elements", sent.once_a_step},
          {"sent_bytes", bytes * (sent.forward + sent.backward + sent.once_a_step)},
          {"parameter_bytes", bytes * held.parameters},
          {"kept_bytes", shares ? json(bytes * held.kept) : json()},
          {"kept_inputs_bytes", shares ? json(bytes * held.kept_inputs) : json()},
          {"gathered_keys_values_bytes", held.gathered_keys_values ? json(bytes * *held.gathered_keys_values) : json()},
          {"shard_pair_bytes", held.shard_pair ? json(bytes * *held.shard_pair) : json()},
          {"forward_flops", shares ? json(flops.linear + flops.attention) : json()}};
}

json layer_json(const CompareReport& report) {
  if (!report.layer) return {};
  const StrategyLayer& layer = *report.layer;
  const FoldCrossover tensor = fold_crossover(layer);
  json both = json::array(), lengths = json::array(), steps = json::array();
  for (const StrategyRanks& ranks : report.strategies()) {
    if (ranks.strategy == Strategy::Fold) continue;
    steps.push_back({{"strategy", strategy_label(ranks)}, {"tokens", number(fold_crossover_of_step(layer, ranks))}});
  }
  for (const StrategyRanks& ranks : report.strategies()) {
    if (ranks.strategy != Strategy::TensorSequence) continue;
    both.push_back({{"tensor", ranks.tensor},
                    {"sequence", ranks.sequence},
                    {"forward_tokens", number(fold_crossover(layer, ranks.tensor, ranks.sequence))}});
  }
  for (const LengthSteps& row : report.lengths) {
    json strategies = json::array();
    for (const StrategyRanks& ranks : report.strategies()) {
      strategies.push_back(strategy_json(report, ranks, row.sequence_length));
    }
    lengths.push_back({{"sequence_tokens", row.sequence_length}, {"strategies", strategies}});
  }
  return {{"hidden", layer.hidden},
          {"query_rows", layer.query_rows},
          {"key_rows", layer.key_rows},
          {"features", layer.features},
          {"parameters", layer.parameters()},
          {"crossover",
           {{"tensor",
             {{"forward_tokens", number(tensor.forward)},
              {"training_tokens", number(tensor.training)},
              {"training_inputs_again_tokens", number(tensor.training_again)},
              {"training_recompute_tokens", number(tensor.with_recompute)}}},
            {"tensor_sequence", both},
            {"all_of_a_step", steps}}},
          {"lengths", lengths}};
}

json step_json(const CompareReport& report, const LengthSteps& row, std::size_t layout) {
  const StrategyStep& step = row.steps[layout];
  json out{{"layout", report.layouts[layout].layout.to_string()},
           {"strategy", strategy_label(report.layouts[layout].ranks)}};
  if (!step.priced) {
    out["broken"] = step.broken;
    return out;
  }
  const PricedPlan& plan = *step.priced;
  const Bytes left = plan.headroom(report.request.memory_limit);
  out["fits"] = left >= 0;
  out["peak_bytes"] = plan.memory.total();
  out["headroom_bytes"] = left;
  out["step_s"] = plan.time.total;
  out["tokens_per_s"] = plan.time.tokens_per_second;
  return out;
}

}  // namespace

json compare_json(const CompareReport& report) {
  const PlanRequest& request = report.request;
  json steps = json::array();
  for (const LengthSteps& row : report.lengths) {
    json layouts = json::array(), front = json::array();
    for (std::size_t i = 0; i < row.steps.size(); ++i) layouts.push_back(step_json(report, row, i));
    for (const std::size_t i : row.front) front.push_back(report.layouts[i].layout.to_string());
    steps.push_back({{"sequence_tokens", row.sequence_length}, {"layouts", layouts}, {"front", front}});
  }
  return {{"request",
           {{"parameters", num_parameters(request.model)},
            {"cluster", request.cluster.to_string()},
            {"accelerator", request.cluster.accelerator.name},
            {"degree", report.degree},
            {"batch_sequences", request.job.batch},
            {"stash", report.stash.to_string()},
            {"memory_limit_bytes", request.memory_limit},
            {"software", request.rules.software},
            {"constants_note", report.rules_note}}},
          {"layer", layer_json(report)},
          {"steps", steps}};
}

}  // namespace octavo::cli
