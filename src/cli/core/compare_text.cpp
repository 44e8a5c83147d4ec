#include <algorithm>
#include <cmath>
#include <map>

#include "cli/core/compare_report.h"
#include "cli/core/table.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

std::string count_text(double value) {
  return with_commas(std::llround(value));
}

std::string size_text(double elements, const CompareReport& report) {
  return format_bytes(std::llround(elements * static_cast<double>(element_bytes(report.request.job.compute))));
}

std::string size_text(const std::optional<double>& elements, const CompareReport& report) {
  return elements ? size_text(*elements, report) : "-";
}

std::string tokens_text(const std::optional<double>& tokens) {
  return tokens ? with_commas(std::llround(std::ceil(*tokens))) : "never";
}

std::string head_text(const CompareReport& report) {
  const PlanRequest& request = report.request;
  const Accelerator& accelerator = request.cluster.accelerator;
  return cat(
      with_commas(num_parameters(request.model)), " parameters; a step of ", with_commas(request.job.batch),
      request.job.batch == 1 ? " sequence" : " sequences", " over ", report.degree, " ranks of ",
      request.cluster.to_string(), " (", accelerator.full_name, "); a plan may use ",
      format_bytes(request.memory_limit), " of ", format_bytes(static_cast<Bytes>(accelerator.memory_bytes.value)),
      "\ntime constants: ",
      report.rules_note.empty() ? cat(request.rules.software, " on ", request.rules.accelerator) : report.rules_note,
      request.rules.given.empty() ? "" : cat("; given: ", join(request.rules.given, ", ")), "\n");
}

double total_sent(const StrategyTraffic& sent) {
  return sent.forward + sent.backward + sent.once_a_step;
}

std::string traffic_table(const CompareReport& report, double tokens) {
  Table table({"strategy", "forward", "backward", "inputs again", "once a step", "bytes"});
  for (const StrategyRanks& ranks : report.strategies()) {
    const StrategyTraffic sent = strategy_traffic(*report.layer, ranks, tokens);
    table.add({strategy_label(ranks), count_text(sent.forward), count_text(sent.backward),
               count_text(sent.inputs_again), count_text(sent.once_a_step), size_text(total_sent(sent), report)});
  }
  return "Sent by a rank, elements; inputs again: only where they are gathered in backward too, not in the bytes. "
         "Bytes:\n"
         "2 of every element, as in the paper; octavo's own gradients have 4. Degrees are taken to divide, here and "
         "below\n" +
         table.to_string();
}

std::string held_table(const CompareReport& report, double tokens) {
  Table table({"strategy", "parameters", "kept whole", "kept of inputs", "gathered K,V", "two shards", "FLOPs"});
  const auto length = static_cast<double>(report.lengths.back().sequence_length);
  for (const StrategyRanks& ranks : report.strategies()) {
    const StrategyMemory held = strategy_memory(*report.layer, ranks, tokens);
    const StrategyFlops flops = strategy_flops(*report.layer, ranks.all(), tokens, length);
    const bool shares = has_share(report, ranks);
    table.add({strategy_label(ranks), size_text(held.parameters, report), shares ? size_text(held.kept, report) : "-",
               shares ? size_text(held.kept_inputs, report) : "-", size_text(held.gathered_keys_values, report),
               size_text(held.shard_pair, report), shares ? format_flops(flops.linear + flops.attention) : "-"});
  }
  return "\nHeld by a rank, weights and activations of one layer; FLOPs of a rank forward\n" + table.to_string();
}

std::string by_length_table(const CompareReport& report) {
  std::vector<std::string> header{"strategy"};
  for (const LengthSteps& row : report.lengths) header.push_back(with_commas(row.sequence_length));
  Table table(header);
  for (const StrategyRanks& ranks : report.strategies()) {
    std::vector<std::string> cells{strategy_label(ranks)};
    for (const LengthSteps& row : report.lengths) {
      const auto tokens = static_cast<double>(row.sequence_length * report.request.job.batch);
      cells.push_back(size_text(total_sent(strategy_traffic(*report.layer, ranks, tokens)), report));
    }
    table.add(cells);
  }
  return "\nSent by a rank in forward, backward and once a step, by tokens of a sequence\n" + table.to_string();
}

std::string crossover_text(const CompareReport& report) {
  const FoldCrossover tensor = fold_crossover(*report.layer);
  Table table({"against", "pass", "tokens"});
  table.add({"tensor", "forward", tokens_text(tensor.forward)});
  table.add({"tensor", "forward and backward", tokens_text(tensor.training)});
  table.add({"tensor scatter, inputs again", "forward and backward", tokens_text(tensor.training_again)});
  table.add({"tensor", "all recomputed", tokens_text(tensor.with_recompute)});
  for (const StrategyRanks& ranks : report.strategies()) {
    if (ranks.strategy != Strategy::TensorSequence) continue;
    table.add(
        {strategy_label(ranks), "forward", tokens_text(fold_crossover(*report.layer, ranks.tensor, ranks.sequence))});
  }
  for (const StrategyRanks& ranks : report.strategies()) {
    if (ranks.strategy == Strategy::Fold) continue;
    table.add({strategy_label(ranks), "all of a step", tokens_text(fold_crossover_of_step(*report.layer, ranks))});
  }
  return "\nFold sends no more than others from so many tokens of a micro-batch on\n" + table.to_string();
}

std::string layer_text(const CompareReport& report) {
  if (!report.layer) {
    return "\nOne layer in closed form: left out; it covers softmax attention without an output gate, with a dense "
           "gated MLP, and "
           "the model has no such layer\n";
  }
  const StrategyLayer& layer = *report.layer;
  const std::int64_t length = report.lengths.back().sequence_length;
  const std::int64_t tokens = length * report.request.job.batch;
  return cat("\nOne layer in closed form (hidden ", count_text(layer.hidden), ", queries ",
             count_text(layer.query_rows), ", keys ", count_text(layer.key_rows), ", features ",
             count_text(layer.features), "), at ", with_commas(tokens), " tokens at once\n",
             traffic_table(report, static_cast<double>(tokens)), held_table(report, static_cast<double>(tokens)),
             by_length_table(report), crossover_text(report));
}

/// One table of all layouts and lengths; "-" where a layout breaks a rule.
template <class Cell>
std::string step_table(const CompareReport& report, const std::string& title, const Cell& cell) {
  std::vector<std::string> header{"layout"};
  for (const LengthSteps& row : report.lengths) header.push_back(with_commas(row.sequence_length));
  Table table(header);
  for (std::size_t i = 0; i < report.layouts.size(); ++i) {
    std::vector<std::string> cells{report.layouts[i].layout.to_string()};
    for (const LengthSteps& row : report.lengths) {
      cells.push_back(row.steps[i].priced ? cell(*row.steps[i].priced) : "-");
    }
    table.add(cells);
  }
  return cat("\n", title, "\n", table.to_string());
}

std::string broken_text(const CompareReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.layouts.size(); ++i) {
    std::string last;
    for (const LengthSteps& row : report.lengths) {
      const std::string& why = row.steps[i].broken;
      if (!why.empty() && why != last) text += cat("  ", report.layouts[i].layout.to_string(), ": ", why, "\n");
      last = why;
    }
  }
  return text.empty() ? "" : "\n\"-\" above\n" + text;
}

std::string fastest_text(const CompareReport& report) {
  Table table({"sequence", "layout", "step", "headroom"});
  for (const LengthSteps& row : report.lengths) {
    const std::string length = with_commas(row.sequence_length);
    if (row.front.empty()) {
      table.add({length, "none fits", "-", "-"});
      continue;
    }
    const PricedPlan& best = *row.steps[row.front.front()].priced;
    table.add({length, best.plan.layout.to_string(), format_seconds(best.time.total),
               format_bytes(best.headroom(report.request.memory_limit))});
  }
  return "\nThe fastest that fits\n" + table.to_string();
}

std::string front_text(const CompareReport& report) {
  const LengthSteps* row = report.longest_that_fits();
  if (row == nullptr) return "";
  Table table({"layout", "step", "headroom"});
  for (const std::size_t i : row->front) {
    const PricedPlan& plan = *row->steps[i].priced;
    table.add({plan.plan.layout.to_string(), format_seconds(plan.time.total),
               format_bytes(plan.headroom(report.request.memory_limit))});
  }
  return cat("\nAt ", with_commas(row->sequence_length),
             " tokens, the longest at which anything fits: no other is faster and has more headroom\n",
             table.to_string());
}

std::string steps_text(const CompareReport& report) {
  const Bytes limit = report.request.memory_limit;
  const auto headroom = [&](const PricedPlan& plan) {
    const Bytes left = plan.headroom(limit);
    return left < 0 ? cat("-", format_bytes(-left)) : format_bytes(left);
  };
  const auto step = [&](const PricedPlan& plan) {
    return plan.headroom(limit) < 0 ? "too large" : format_seconds(plan.time.total);
  };
  return cat(step_table(report,
                        cat("One training step, stash ", report.stash.to_string(),
                            ": peak memory of a rank, by tokens of a sequence"),
                        [](const PricedPlan& plan) { return format_bytes(plan.memory.total()); }),
             step_table(report, "Headroom", headroom), step_table(report, "Step time, of what fits", step),
             broken_text(report), fastest_text(report), front_text(report));
}

std::string trust_text(const CompareReport& report) {
  const Confidence& confidence = report.confidence;
  return cat("\nHow far to trust the times (docs/validation.md): ",
             confidence.has_runs() ? cat("published steps are missed by ", percent(confidence.likely_error()),
                                         " in the mean; closer than that, two layouts are not told apart.\n")
             : report.request.rules.given.empty() ? "nobody published steps of this software on this accelerator.\n"
                                                  : "with constants of --set, no published step speaks for them.\n",
             "No published run had ", join(confidence.beyond, ", "), ": those times are extrapolations.\n");
}

}  // namespace

std::string compare_text(const CompareReport& report) {
  return head_text(report) + layer_text(report) + steps_text(report) + trust_text(report);
}

}  // namespace octavo::cli
