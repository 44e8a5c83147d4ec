#include <algorithm>
#include <cmath>

#include "cli/core/plan_report.h"
#include "cli/core/table.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

std::string percent(double share, int digits = 1) {
  const std::string text = fixed(100 * share, digits);
  return (text == "-0.0" ? "0.0" : text) + " %";
}

std::string signed_percent(double share) {
  return cat(share > 0 ? "+" : "", percent(share));
}

std::string rate_text(double tokens_per_second) {
  return with_commas(std::llround(tokens_per_second)) + " tokens/s";
}

std::string head_text(const PlanReport& report) {
  const PlanRequest& request = report.request;
  const Accelerator& accelerator = request.cluster.accelerator;
  std::string text =
      cat(with_commas(num_parameters(request.model)), " parameters; a step of ", with_commas(request.job.batch),
          " sequences x ", with_commas(request.job.sequence_length), " tokens\n");
  text += cat(request.cluster.to_string(), ": ", request.cluster.world_size(), " x ", accelerator.full_name, ", ",
              request.cluster.gpus_per_node, " per node, ", accelerator.fabric.link, "; a plan may use ",
              format_bytes(request.memory_limit), " of ",
              format_bytes(static_cast<Bytes>(accelerator.memory_bytes.value)), "\n");
  text += cat("time constants: ",
              report.rules_note.empty() ? cat(request.rules.software, " on ", request.rules.accelerator, " (",
                                              request.rules.source, ", ", request.rules.date, ")")
                                        : report.rules_note,
              "\n");
  return text;
}

std::string best_text(const PlanReport& report) {
  Table table({"#", "step", "tokens/s", "MFU", "HFU", "peak", "headroom", "layout", "micro-batch", "stash"});
  int place = 0;
  for (const PricedPlan& plan : report.found.best) {
    table.add({cat(++place), format_seconds(plan.time.total), with_commas(std::llround(plan.time.tokens_per_second)),
               percent(plan.time.mfu), percent(plan.time.hfu), format_bytes(plan.memory.total()),
               format_bytes(plan.headroom(report.request.memory_limit)), plan.plan.layout.to_string(),
               cat(plan.plan.micro_batch), plan.plan.stash.to_string()});
  }
  return cat("\nThe best, one per set of degrees (", with_commas(report.found.layouts), " layouts, ",
             with_commas(report.found.priced), " priced in full, in ", format_seconds(report.found.seconds), ")\n",
             table.to_string());
}

std::string links_text(const GroupLinks& links) {
  if (links.num_nodes == 1) return "in a node";
  return links.ranks_per_node == 1 ? cat(links.num_nodes, " nodes, 1 each")
                                   : cat(links.num_nodes, " nodes of ", links.ranks_per_node);
}

std::string axes_text(const PlanRequest& request, const PricedPlan& plan) {
  Table table({"axis", "ranks", "links", "algorithm", "sent per rank", "hidden", "exposed"});
  const DeviceMesh& mesh = plan.plan.layout.mesh;
  bool any = false;
  for (const Axis axis : kAllAxes) {
    const AxisTime& time = plan.time.axis(axis);
    if (mesh.size(axis) == 1 && time.bytes == 0) continue;
    const std::array one{axis};
    const std::array copies{Axis::Data, Axis::Expert, Axis::Sequence};
    const std::span<const Axis> axes = axis == Axis::Data ? std::span<const Axis>(copies) : std::span<const Axis>(one);
    const GroupLinks links = request.cluster.links(mesh, axes);
    table.add({std::string(axis_name(axis)), cat(links.num_ranks), links_text(links),
               time.bytes > 0 ? std::string(algorithm_name(time.algorithm)) : "-",
               format_bytes(static_cast<Bytes>(time.bytes)), format_seconds(time.hidden),
               format_seconds(time.exposed)});
    any = true;
  }
  return any ? table.to_string() : "One rank: nothing is sent.\n";
}

std::string detail_text(const PlanReport& report) {
  const PlanDetail& detail = *report.detail;
  const PricedPlan& plan = detail.priced;
  const StepTime& time = plan.time;
  std::string text = cat("\n", report.is_asked ? "" : "The first in full: ", "\"", plan.plan.layout.to_string(),
                         "\", micro-batch ", plan.plan.micro_batch, ", stash ", plan.plan.stash.to_string(), "\n");
  const int ranks = plan.plan.layout.world_size(), world = report.request.cluster.world_size();
  if (ranks < world) text += cat("idle    ", world - ranks, " of ", world, " accelerators\n");
  text += cat("memory  ", plan.memory.to_string(), plan.memory.stage > 0 ? cat(" (stage ", plan.memory.stage, ")") : "",
              "; ",
              detail.fits() ? cat(format_bytes(plan.headroom(detail.limit)), " to spare")
                            : cat(format_bytes(-plan.headroom(detail.limit)), " too much"),
              "\n");
  text += cat("time    ", format_seconds(time.total), ": matmuls ", format_seconds(time.matmul), ", attention ",
              format_seconds(time.attention), ", memory-bound ", format_seconds(time.memory_bound), ", recompute ",
              format_seconds(time.recompute), ", head ", format_seconds(time.head), ", optimizer ",
              format_seconds(time.optimizer), ",\n        waiting for the host ", format_seconds(time.host),
              ", bubble ", format_seconds(time.bubble), ", exposed ", format_seconds(time.exposed()), ", once a step ",
              format_seconds(time.fixed), "\n");
  text += cat("work    ", format_flops(time.model), " of the model, ", format_flops(time.executed), " executed; ",
              rate_text(time.tokens_per_second), ", MFU ", percent(time.mfu), ", HFU ", percent(time.hfu), "\n");
  return text + axes_text(report.request, plan);
}

std::string changes_text(const PlanDetail& detail) {
  if (detail.fits()) return "";
  if (detail.changes.empty()) return "\nNo one or two changes make it fit.\n";
  constexpr std::size_t kMostRows = 8;
  Table table({"change", "step", "peak", "layout"});
  for (std::size_t i = 0; i < detail.changes.size() && i < kMostRows; ++i) {
    const PlanChange& change = detail.changes[i];
    table.add({change.what, format_seconds(change.plan.time.total), format_bytes(change.plan.memory.total()),
               change.plan.plan.layout.to_string()});
  }
  return "\nIt would fit with\n" + table.to_string();
}

std::string why_not_text(const SearchResult& found) {
  Table table({"rule", "layouts", "share", "for example"});
  for (int i = 0; i < kNumRules; ++i) {
    const RuledOut& out = found.ruled_out[i];
    if (out.layouts == 0) continue;
    constexpr std::size_t kMostLetters = 90;
    const std::string example =
        out.example.size() > kMostLetters ? out.example.substr(0, kMostLetters) + "..." : out.example;
    table.add(
        {std::string(rule_text(static_cast<Rule>(i))), with_commas(out.layouts),
         percent(static_cast<double>(out.layouts) / static_cast<double>(std::max<std::int64_t>(found.layouts, 1))),
         example});
  }
  return "\nWhy not the others: the first rule that each breaks\n" + table.to_string();
}

std::string reach_text(const PlanReport& report) {
  Table table(
      {"strategy", "fastest step", "largest micro-batch", "longest sequence", "fewest accelerators", "data left"});
  for (const StrategyReach& reach : report.reach) {
    const auto& strategies = report.found.strategies;
    const auto best = std::find_if(strategies.begin(), strategies.end(),
                                   [&](const StrategyBest& strategy) { return strategy.name == reach.name; });
    table.add({reach.name, best == strategies.end() ? "none fits" : format_seconds(best->plan.time.total),
               reach.largest_micro_batch > 0 ? with_commas(reach.largest_micro_batch) : "none",
               reach.longest_sequence > 0 ? with_commas(reach.longest_sequence) + " tokens" : "none",
               reach.fewest_accelerators ? cat(*reach.fewest_accelerators) : "none fits",
               reach.fewest_accelerators ? cat(reach.data_degree) : "-"});
  }
  return "\nHow far each strategy reaches: all recomputed, ZeRO 3 over its data ranks\n" + table.to_string();
}

std::string sensitivity_text(const PlanReport& report) {
  if (report.sensitivity.empty()) return "";
  Table table({"10 % of", "slower", "faster", "then the best is"});
  for (const Sensitivity& each : report.sensitivity) {
    table.add(
        {each.what, signed_percent(each.slower), signed_percent(each.faster), each.other_winner.value_or("the same")});
  }
  return "\nWhat the first plan's step hangs on\n" + table.to_string();
}

std::string winners_text(const PlanReport& report) {
  if (report.winners.empty()) return "";
  Table table({"sequence", "step", "layout", "micro-batch", "stash"});
  std::vector<std::string> changes;
  const LengthWinner* last = nullptr;
  for (const LengthWinner& winner : report.winners) {
    const std::string length = with_commas(winner.sequence_length) + " tokens";
    if (!winner.plan) {
      table.add({length, "-", "none fits", "-", "-"});
      continue;
    }
    const StepPlan& plan = winner.plan->plan;
    table.add({length, format_seconds(winner.plan->time.total), plan.layout.to_string(), cat(plan.micro_batch),
               plan.stash.to_string()});
    if (last != nullptr && last->plan->plan.layout.to_string() != plan.layout.to_string()) {
      changes.push_back(with_commas(winner.sequence_length));
    }
    last = &winner;
  }
  return cat("\nThe winner by length, tokens per batch held\n", table.to_string(),
             last == nullptr   ? ""
             : changes.empty() ? "It stays the same.\n"
                               : cat("It changes at ", join(changes, ", "), " tokens.\n"));
}

std::string confidence_text(const PlanReport& report) {
  const Confidence& confidence = report.confidence;
  if (!report.rules_note.empty() || confidence.error <= 0) {
    return "\nNobody published steps of this software on this accelerator: take times as a rough guide.\n";
  }
  return cat("\nThese constants miss published steps of models that they were not fitted to by ",
             percent(confidence.error), " in the mean (docs/validation.md):\nthe first plan takes ",
             format_seconds(confidence.least), " to ", format_seconds(confidence.most), ", and ",
             confidence.not_told_apart,
             " of the others listed are not told apart from it. Nobody published runs of fold.\n");
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  std::string text = head_text(report);
  if (report.is_asked) return text + detail_text(report) + changes_text(*report.detail);
  if (report.detail) text += best_text(report) + detail_text(report);
  text += why_not_text(report.found) + reach_text(report);
  if (report.detail) text += sensitivity_text(report) + winners_text(report) + confidence_text(report);
  return text;
}

std::string constants_text(const PlanRequest& request) {
  const Accelerator& accelerator = request.cluster.accelerator;
  Table hardware({"constant", "value", "unit", "direction", "source", "date"});
  for (const HardwareField& field : hardware_fields()) {
    const std::optional<HardwareConstant> constant = field.get(accelerator);
    if (!constant) continue;
    hardware.add({field.name, cat(constant->value), field.unit, field.direction.empty() ? "-" : field.direction,
                  constant->source, constant->date});
  }
  const TimeRules& rules = request.rules;
  Table times({"constant", "value", "unit", "what", "source", "date"});
  for (const TimeConstant& constant : time_constants()) {
    const auto [source, date] = constant.origin(rules);
    times.add({constant.name, cat(rules.*constant.member), constant.unit, constant.meaning, source, date});
  }
  return cat("Hardware: ", accelerator.full_name, "\n", hardware.to_string(), "\nSoftware: ", rules.software, " on ",
             rules.accelerator, ", ", rules.precision, "\n", times.to_string(), "\nMemory: a plan may use ",
             percent(kUsableMemory, 0), " of an accelerator's, unless --memory-limit says otherwise.\n");
}

}  // namespace octavo::cli
