#include <algorithm>
#include <cmath>

#include "cli/core/plan_report.h"
#include "cli/core/table.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

std::string signed_percent(double share) {
  const std::string text = percent(share);
  return text.starts_with("-") || text == percent(0) ? text : "+" + text;
}

std::string counted(std::int64_t number, const char* one, const char* many) {
  return cat(with_commas(number), " ", number == 1 ? one : many);
}

/// Steps and their parts are compared and added: minutes would hide what they differ by.
std::string step_text(Seconds seconds) {
  return seconds < 60 ? format_seconds(seconds) : cat(fixed(seconds, 1), " s");
}

std::string layout_text(const Layout& layout) {
  return layout.world_size() == 1 ? "one rank" : layout.to_string();
}

std::string rate_text(double tokens_per_second) {
  return with_commas(std::llround(tokens_per_second)) + " tokens/s";
}

std::string head_text(const PlanReport& report) {
  const PlanRequest& request = report.request;
  const Accelerator& accelerator = request.cluster.accelerator;
  std::string text = cat(with_commas(num_parameters(request.model)), " parameters; a step of ",
                         counted(request.job.batch, "sequence", "sequences"), " x ",
                         counted(request.job.sequence_length, "token", "tokens"), "\n");
  text += cat(request.cluster.to_string(), ": ", request.cluster.world_size(), " x ", accelerator.full_name, ", ",
              request.cluster.gpus_per_node, " per node, ", accelerator.fabric.link, "; a plan may use ",
              format_bytes(request.memory_limit), " of ",
              format_bytes(static_cast<Bytes>(accelerator.memory_bytes.value)), "\n");
  text += cat("time constants: ",
              report.rules_note.empty() ? cat(request.rules.software, " on ", request.rules.accelerator, " (",
                                              request.rules.source, ", ", request.rules.date, ")")
                                        : report.rules_note,
              "\n");
  for (const std::string& name : request.rules.given) {
    for (const TimeConstant& constant : time_constants()) {
      if (constant.name == name) text += cat("  ", name, " = ", request.rules.*constant.member, " (--set)\n");
    }
  }
  if (request.job.sequence_length > request.model.max_positions) {
    text += cat("note: the model's config has ", with_commas(request.model.max_positions),
                " positions; it was not made for longer sequences\n");
  }
  const std::vector<std::string> changes = request.cluster.changes();
  if (!changes.empty()) text += cat("the cluster file changes ", join(changes, ", "), "\n");
  return text;
}

/// Of all that the cluster can run, what was searched.
std::string space_text(const SearchSpace& space) {
  std::vector<std::string> axes;
  for (const Axis axis : kAllAxes) {
    if (space.axes[static_cast<std::size_t>(axis)]) axes.emplace_back(axis_name(axis));
  }
  std::vector<std::string> only;
  for (const auto& [name, stage] : kZeroWords) {
    if (!space.zero.empty() && space.allows(stage)) only.emplace_back(name);
  }
  for (const auto& [name, form] : kScheduleWords) {
    if (!space.schedules.empty() && space.allows(form)) only.emplace_back(name);
  }
  return cat(axes.size() < kAllAxes.size() ? cat(" by ", join(axes, ", ")) : "",
             only.empty() ? "" : cat(" with ", join(only, ", ")),
             space.runnable ? ", of those that octavo train runs today" : "");
}

const std::vector<std::string> kPlanColumns = {"step", "tokens/s", "each",   "MFU",         "HFU",
                                               "peak", "headroom", "layout", "micro-batch", "stash"};

/// `first`: the columns in front of a plan's.
Table plan_table(std::vector<std::string> first) {
  first.insert(first.end(), kPlanColumns.begin(), kPlanColumns.end());
  return Table(std::move(first));
}

/// A row of a table of plans. Rates are those of all accelerators, idle ones too.
std::vector<std::string> plan_row(std::vector<std::string> first, const PricedPlan& plan, Bytes limit, int world) {
  const double busy = static_cast<double>(plan.plan.layout.world_size()) / world;  // of the cluster's accelerators
  const std::vector<std::string> cells = {step_text(plan.time.total),
                                          with_commas(std::llround(plan.time.tokens_per_second)),
                                          with_commas(std::llround(plan.time.tokens_per_second / world)),
                                          percent(plan.time.mfu * busy),
                                          percent(plan.time.hfu * busy),
                                          format_bytes(plan.memory.total()),
                                          format_bytes(plan.headroom(limit)),
                                          layout_text(plan.plan.layout),
                                          cat(plan.plan.micro_batch),
                                          plan.plan.stash.to_string()};
  first.insert(first.end(), cells.begin(), cells.end());
  return first;
}

std::string best_text(const PlanReport& report) {
  Table table = plan_table({"#"});
  for (std::size_t i = 0; i < std::min(report.top, report.found.best.size()); ++i) {
    table.add(
        plan_row({cat(i + 1)}, report.found.best[i], report.request.memory_limit, report.request.cluster.world_size()));
  }
  return cat("\nThe best", space_text(report.space), ", one per set of degrees (", with_commas(report.found.layouts),
             " layouts, ", with_commas(report.found.priced), " priced in full, in ",
             format_seconds(report.found.seconds), ")\n", table.to_string());
}

/// The layout that was asked for beside the best, and beside the best by the same axes.
std::string beside_text(const PlanReport& report) {
  const PricedPlan& asked = report.detail->priced;
  const SearchResult& found = report.found;
  if (found.best.empty()) return cat("\nNo layout", space_text(report.space), " fits.\n");
  const Bytes limit = report.request.memory_limit;
  const int world = report.request.cluster.world_size();
  Table table = plan_table({""});
  table.add(plan_row({"asked"}, asked, limit, world));
  const std::string name = strategy_name(asked.plan.layout);
  for (const StrategyBest& strategy : found.strategies) {
    if (strategy.name == name) table.add(plan_row({"same axes"}, strategy.plan, limit, world));
  }
  table.add(plan_row({"any"}, found.best.front(), limit, world));
  const double less = 1 - found.best.front().time.total / asked.time.total;
  return cat("\nBeside the best", space_text(report.space), " of ", with_commas(found.layouts), " layouts",
             less > 0 ? cat(", which takes ", percent(less), " less time") : "", "\n", table.to_string());
}

std::string links_text(const GroupLinks& links) {
  if (links.num_nodes == 1) return "in a node";
  if (!links.is_even) return cat(links.num_nodes, " nodes, at least ", links.ranks_per_node, " each");
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
    // ZeRO and gradients go over all ranks with the same weights, with a data axis or without.
    const bool is_copies = axis == Axis::Data && mesh.size(Axis::Data) == 1;
    table.add({is_copies ? "gradients" : std::string(axis_name(axis)), cat(links.num_ranks), links_text(links),
               time.bytes > 0 ? std::string(algorithm_name(time.algorithm)) : "-",
               format_bytes(static_cast<Bytes>(time.bytes)), step_text(time.hidden), step_text(time.exposed)});
    any = true;
  }
  return any ? table.to_string() : "One rank: nothing is sent.\n";
}

std::string detail_text(const PlanReport& report) {
  const PlanDetail& detail = *report.detail;
  const PricedPlan& plan = detail.priced;
  const StepTime& time = plan.time;
  std::string text = cat("\n", report.is_asked ? "" : "The first in full: ", "\"", layout_text(plan.plan.layout),
                         "\", micro-batch ", plan.plan.micro_batch, ", stash ", plan.plan.stash.to_string(), "\n");
  const int ranks = plan.plan.layout.world_size(), world = report.request.cluster.world_size();
  if (ranks < world) text += cat("idle    ", world - ranks, " of ", world, " accelerators, not in MFU and HFU here\n");
  text += cat("memory  ", plan.memory.to_string(), plan.memory.stage > 0 ? cat(" (stage ", plan.memory.stage, ")") : "",
              "; ",
              detail.fits() ? cat(format_bytes(plan.headroom(detail.limit)), " to spare")
                            : cat(format_bytes(-plan.headroom(detail.limit)), " too much"),
              "\n");
  text += cat("time    ", step_text(time.total), ": matmuls ", step_text(time.matmul), ", attention ",
              step_text(time.attention), ", memory-bound ", step_text(time.memory_bound), ", recompute ",
              step_text(time.recompute), ", head ", step_text(time.head), ", optimizer ", step_text(time.optimizer),
              ",\n        waiting for the host ", step_text(time.host), ", bubble ", step_text(time.bubble),
              ", exposed ", step_text(time.exposed()), ", once a step ", step_text(time.fixed), "\n");
  text += cat("work    ", format_flops(time.model), " of the model, ", format_flops(time.executed), " executed; ",
              rate_text(time.tokens_per_second), ", MFU ", percent(time.mfu), ", HFU ", percent(time.hfu), "\n");
  constexpr double kBillion = 1e9, kHour = 3600;
  const double hours = kBillion / time.tokens_per_second / kHour * world;
  text += cat("bill    ", hours < 100 ? fixed(hours, 1) : with_commas(std::llround(hours)),
              " accelerator-hours per billion tokens on ", counted(world, "accelerator", "accelerators"), "\n");
  return text + axes_text(report.request, plan);
}

std::string changes_text(const PlanDetail& detail) {
  if (detail.fits()) return "";
  if (detail.changes.empty()) return "\nNo one or two changes make it fit.\n";
  constexpr std::size_t kMostRows = 8;
  Table table({"change", "step", "peak", "layout"});
  for (std::size_t i = 0; i < detail.changes.size() && i < kMostRows; ++i) {
    const PlanChange& change = detail.changes[i];
    table.add({change.what, step_text(change.plan.time.total), format_bytes(change.plan.memory.total()),
               layout_text(change.plan.plan.layout)});
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

std::string strategies_text(const PlanReport& report) {
  Table table = plan_table({"strategy"});
  for (const StrategyBest& strategy : report.found.strategies) {
    table.add(
        plan_row({strategy.name}, strategy.plan, report.request.memory_limit, report.request.cluster.world_size()));
  }
  return "\nThe fastest of each strategy, data apart\n" + table.to_string();
}

std::string reach_text(const PlanReport& report) {
  Table table({"strategy", "largest micro-batch", "longest sequence", "fewest accelerators", "by", "step", "times"});
  for (const StrategyReach& reach : report.reach) {
    table.add({reach.name, reach.largest_micro_batch > 0 ? with_commas(reach.largest_micro_batch) : "none",
               reach.longest_sequence > 0 ? with_commas(reach.longest_sequence) + " tokens" : "none",
               reach.fewest ? cat(reach.fewest->plan.layout.world_size()) : "none fits",
               reach.fewest ? layout_text(reach.fewest->plan.layout) : "-",
               reach.fewest ? step_text(reach.fewest->time.total) : "-", reach.fewest ? cat(reach.times) : "-"});
  }
  return "\nHow far each strategy reaches: all recomputed, the highest ZeRO stage over its data ranks; sequences to "
         "1,024 tokens, one "
         "at\n"
         "once. Fewest: by any degree that shares out the batch, whether it divides the cluster or not, and the step "
         "that\n"
         "these take for the whole batch; times: that the cluster has as many\n" +
         table.to_string();
}

std::string sensitivity_table(const PlanReport& report, Sensitivity::Kind kind, const std::string& title,
                              std::vector<std::string> header) {
  Table table(std::move(header));
  bool any = false;
  for (const Sensitivity& each : report.sensitivity) {
    const bool has_effect = each.slower != 0 || each.faster != 0 || each.winner_if_slower || each.winner_if_faster;
    if (each.kind != kind || !has_effect) continue;
    table.add({each.what, signed_percent(each.slower), each.winner_if_slower.value_or("the same"),
               signed_percent(each.faster), each.winner_if_faster.value_or("the same")});
    any = true;
  }
  return any ? title + table.to_string() : "";
}

std::string sensitivity_text(const PlanReport& report) {
  return sensitivity_table(report, Sensitivity::Kind::TenPercent,
                           "\nWhat the first plan's step hangs on; the best then: of the plans found, each as it is\n",
                           {"10 % of", "slower", "then the best is", "faster", "then the best is"}) +
         sensitivity_table(report, Sensitivity::Kind::Hiding,
                           "\nIf other shares of its communication were hidden; the best then: of the plans found "
                           "(--set searches anew)\n",
                           {"of", "none hidden", "then the best is", "all hidden", "then the best is"});
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
    table.add({length, step_text(winner.plan->time.total), plan.layout.to_string(), cat(plan.micro_batch),
               plan.stash.to_string()});
    if (last != nullptr && last->plan->plan.layout.to_string() != plan.layout.to_string()) {
      changes.push_back(with_commas(winner.sequence_length));
    }
    last = &winner;
  }
  return cat("\nThe winner by length, tokens per batch held\n", table.to_string(),
             last == nullptr || report.winners.size() < 2 ? ""
             : changes.empty()                            ? "It stays the same.\n"
                                                          : cat("It changes at ", join(changes, ", "), " tokens.\n"));
}

std::string sizes_text(const PlanReport& report) {
  if (report.sizes.empty()) return "";
  Table table = plan_table({"nodes", "accelerators"});
  for (const SizeWinner& winner : report.sizes) {
    const int world = winner.num_nodes * report.request.cluster.gpus_per_node;
    std::vector<std::string> row{cat(winner.num_nodes), cat(world)};
    if (winner.plan) {
      row = plan_row(std::move(row), *winner.plan, report.request.memory_limit, world);
    } else {
      row.emplace_back("none fits");
      row.resize(row.size() + kPlanColumns.size() - 1, "-");
    }
    table.add(std::move(row));
  }
  return "\nThe winner by number of nodes, the batch held; each: tokens/s of an accelerator\n" + table.to_string();
}

std::string confidence_text(const PlanReport& report) {
  const Confidence& confidence = report.confidence;
  const TimeRules& rules = report.request.rules;
  if (!rules.given.empty()) return "\nWith constants of --set, no published step speaks for these times.\n";
  if (!confidence.has_runs()) {
    return "\nNobody published steps of this software on this accelerator: take times as a rough guide.\n";
  }
  std::string text = cat("\nHow far to trust the times: published steps of ", rules.software, " on ", rules.accelerator,
                         " are missed by ", percent(confidence.mean_error), " in the mean and ",
                         percent(confidence.largest_error), " at most (docs/validation.md)",
                         confidence.left_out_error > 0
                             ? cat(", by ", percent(confidence.left_out_error), " with each model left out of the fit")
                             : "",
                         ".\n");
  if (!confidence.is_measured()) {
    text += cat("The first plan has what none of these runs had: ", join(confidence.beyond, ", "),
                ". For that its time is an extrapolation.\n");
  }
  const StepTime& first = report.detail->priced.time;
  constexpr double kMuch = 0.05;
  if (first.fixed > kMuch * first.total) {
    text += cat(percent(first.fixed / first.total), " of the step is what every step has beside its work, ",
                step_text(first.fixed), ", whatever the model: short steps are rough guesses.\n");
  }
  if (report.found.best.size() > 1) {
    text += cat(confidence.as_fast, " of the other sets of degrees are within ", percent(confidence.likely_error()),
                " of the first: as fast, as far as this can tell.\n");
  }
  return text;
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  std::string text = head_text(report);
  if (report.is_asked) {
    return text + detail_text(report) + changes_text(*report.detail) + beside_text(report);
  }
  if (report.detail) text += best_text(report) + detail_text(report);
  text += why_not_text(report.found);
  if (report.detail) text += strategies_text(report);
  text += reach_text(report);
  if (report.detail)
    text += sensitivity_text(report) + winners_text(report) + sizes_text(report) + confidence_text(report);
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
