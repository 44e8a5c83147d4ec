#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/core/plan_report.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

json priced_json(const PricedPlan& plan, Bytes limit) {
  const StepTime& time = plan.time;
  json parts, axes;
  for (int part = 0; part < kNumMemoryParts; ++part) {
    parts[std::string(memory_part_name(static_cast<MemoryPart>(part)))] = plan.memory.by_part[part];
  }
  for (const Axis axis : kAllAxes) {
    const AxisTime& each = time.axis(axis);
    axes[std::string(axis_name(axis))] = {
        {"degree", plan.plan.layout.mesh.size(axis)},
        {"sent_bytes_per_rank", each.bytes},
        {"hidden_s", each.hidden},
        {"exposed_s", each.exposed},
        {"algorithm", each.bytes > 0 ? json(algorithm_name(each.algorithm)) : json()}};
  }
  return {{"layout", plan.plan.layout.to_string()},
          {"micro_batch", plan.plan.micro_batch},
          {"stash", plan.plan.stash.to_string()},
          {"fits", plan.memory.total() <= limit},
          {"memory",
           {{"peak_bytes", plan.memory.total()},
            {"headroom_bytes", plan.headroom(limit)},
            {"when", peak_place_text(plan.memory.place)},
            {"stage", plan.memory.stage},
            {"by_part_bytes", parts}}},
          {"time",
           {{"step_s", time.total},
            {"matmul_s", time.matmul},
            {"attention_s", time.attention},
            {"memory_bound_s", time.memory_bound},
            {"recompute_s", time.recompute},
            {"head_s", time.head},
            {"host_s", time.host},
            {"optimizer_s", time.optimizer},
            {"fixed_s", time.fixed},
            {"bubble_s", time.bubble},
            {"exposed_s", time.exposed()}}},
          {"axes", axes},
          {"model_flops", time.model},
          {"executed_flops", time.executed},
          {"tokens_per_s", time.tokens_per_second},
          {"mfu", time.mfu},
          {"hfu", time.hfu}};
}

json request_json(const PlanReport& report) {
  const PlanRequest& request = report.request;
  json axes = json::array();
  for (const Axis axis : kAllAxes) {
    if (report.space.axes[static_cast<std::size_t>(axis)]) axes.push_back(axis_name(axis));
  }
  return {{"parameters", num_parameters(request.model)},
          {"model_type", request.model.model_type},
          {"cluster", request.cluster.to_string()},
          {"accelerator", request.cluster.accelerator.name},
          {"accelerators", request.cluster.world_size()},
          {"sequence_tokens", request.job.sequence_length},
          {"batch_sequences", request.job.batch},
          {"memory_limit_bytes", request.memory_limit},
          {"software", request.rules.software},
          {"constants_note", report.rules_note},
          {"axes", axes},
          {"runnable", report.space.runnable},
          {"constants_given", request.rules.given},
          {"cluster_changes", request.cluster.changes()}};
}

}  // namespace

json plan_json(const PlanReport& report) {
  const Bytes limit = report.request.memory_limit;
  json out{{"request", request_json(report)}};
  if (report.is_asked) {
    out["plan"] = priced_json(report.detail->priced, limit);
    out["changes"] = json::array();
    for (const PlanChange& change : report.detail->changes) {
      out["changes"].push_back({{"what", change.what}, {"plan", priced_json(change.plan, limit)}});
    }
    out["best"] = report.found.best.empty() ? json() : priced_json(report.found.best.front(), limit);
    return out;
  }
  out["search"] = {
      {"layouts", report.found.layouts}, {"priced", report.found.priced}, {"seconds", report.found.seconds}};
  out["best"] = out["front"] = out["strategies"] = out["sensitivity"] = out["winners"] = out["sizes"] = json::array();
  for (std::size_t i = 0; i < std::min(report.top, report.found.best.size()); ++i) {
    out["best"].push_back(priced_json(report.found.best[i], limit));
  }
  for (const PricedPlan& plan : report.found.front) out["front"].push_back(priced_json(plan, limit));
  for (const StrategyBest& strategy : report.found.strategies) {
    out["strategies"].push_back({{"strategy", strategy.name}, {"best", priced_json(strategy.plan, limit)}});
  }
  for (int rule = 0; rule < kNumRules; ++rule) {
    out["ruled_out"][std::string(rule_name(static_cast<Rule>(rule)))] = {
        {"layouts", report.found.ruled_out[rule].layouts}, {"example", report.found.ruled_out[rule].example}};
  }
  for (const StrategyReach& reach : report.reach) {
    out["reach"].push_back(
        {{"strategy", reach.name},
         {"largest_micro_batch_sequences", reach.largest_micro_batch},
         {"longest_sequence_tokens", reach.longest_sequence},
         {"fewest_accelerators", reach.fewest ? json(reach.fewest->plan.layout.world_size()) : json()},
         {"fewest", reach.fewest ? priced_json(*reach.fewest, limit) : json()},
         {"times", reach.times}});
  }
  for (const Sensitivity& each : report.sensitivity) {
    const auto text = [](const std::optional<std::string>& layout) { return layout ? json(*layout) : json(); };
    out["sensitivity"].push_back({{"kind", each.kind == Sensitivity::Kind::Hiding ? "hiding" : "ten_percent"},
                                  {"what", each.what},
                                  {"step_change_rel_slower", each.slower},
                                  {"step_change_rel_faster", each.faster},
                                  {"winner_if_slower", text(each.winner_if_slower)},
                                  {"winner_if_faster", text(each.winner_if_faster)}});
  }
  for (const LengthWinner& winner : report.winners) {
    out["winners"].push_back({{"sequence_tokens", winner.sequence_length},
                              {"best", winner.plan ? priced_json(*winner.plan, limit) : json()}});
  }
  const Confidence& confidence = report.confidence;
  for (const SizeWinner& winner : report.sizes) {
    out["sizes"].push_back(
        {{"nodes", winner.num_nodes}, {"best", winner.plan ? priced_json(*winner.plan, limit) : json()}});
  }
  out["confidence"] = {{"mean_error_rel", confidence.has_runs() ? json(confidence.mean_error) : json()},
                       {"left_out_error_rel", confidence.left_out_error > 0 ? json(confidence.left_out_error) : json()},
                       {"largest_error_rel", confidence.has_runs() ? json(confidence.largest_error) : json()},
                       {"beyond_published_runs", confidence.beyond},
                       {"as_fast", confidence.as_fast}};
  return out;
}

json constants_json(const PlanRequest& request) {
  json out{{"hardware", json::array()}, {"software", json::array()}};
  for (const HardwareField& field : hardware_fields()) {
    const std::optional<HardwareConstant> constant = field.get(request.cluster.accelerator);
    if (!constant) continue;
    out["hardware"].push_back({{"name", field.name},
                               {"value", constant->value},
                               {"unit", field.unit},
                               {"direction", field.direction},
                               {"source", constant->source},
                               {"date", constant->date}});
  }
  for (const TimeConstant& constant : time_constants()) {
    const auto [source, date] = constant.origin(request.rules);
    out["software"].push_back({{"name", constant.name},
                               {"value", request.rules.*constant.member},
                               {"unit", constant.unit},
                               {"meaning", constant.meaning},
                               {"source", source},
                               {"date", date}});
  }
  out["usable_memory_share"] = kUsableMemory;
  return out;
}

}  // namespace octavo::cli
