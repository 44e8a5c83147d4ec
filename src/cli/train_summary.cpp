#include "cli/train_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/core/table.h"
#include "cli/report_json.h"
#include "octavo/base/text.h"

namespace octavo::cli {

double TrainSummary::median_step() const {
  std::vector<Seconds> sorted = step_seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

double TrainSummary::matmul_peak() const {
  double sum = 0;
  for (const RankSummary& rank : ranks) sum += rank.matmul_peak;
  return sum;
}

std::string TrainSummary::traffic_verdict() const {
  const std::vector<std::string> differences = traffic_differences(predicted, mean_ledger(ranks));
  if (differences.empty()) return "as the layout's formulas predict\n";
  return cat("NOT as the layout's formulas predict:\n  ", join(differences, "\n  "), "\n");
}

std::string TrainSummary::to_text() const {
  const double rate = flops_per_step / median_step();
  std::string text =
      cat("\nmedian step ", format_seconds(median_step()), ", ",
          with_commas(static_cast<std::int64_t>(tokens_per_step / median_step())), " tokens/s, ",
          format_flop_rate(rate), " of the model = ", fixed(100 * rate / matmul_peak(), 1), "% of ",
          format_flop_rate(matmul_peak()), " that matmul reaches here (", dtype, ", measured at the start)\n");
  text += cat("start-up ", format_seconds(startup_seconds), "\n");
  text += cat("training loss ", fixed(losses.front(), 4), " -> ", fixed(losses.back(), 4));
  if (!valid_losses.empty()) {
    text +=
        cat("; validation loss ", fixed(valid_losses.front().second, 4), " -> ", fixed(valid_losses.back().second, 4));
  }
  text += "\n\npeak memory per rank\n";
  std::vector<std::string> header = {"rank", "total"};
  for (int c = 0; c < kNumMemoryCategories; ++c)
    header.emplace_back(memory_category_name(static_cast<MemoryCategory>(c)));
  Table memory(header);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<std::string> row = {cat(rank), format_bytes(ranks[rank].peak.total)};
    for (const Bytes bytes : ranks[rank].peak.by_category) row.push_back(format_bytes(bytes));
    memory.add(row);
  }
  text += memory.to_string();
  if (const std::vector<LedgerRow> moved = mean_ledger(ranks); !moved.empty()) {
    text += cat("\nmoved in ", step_seconds.size(), " steps, per rank\n", ledger_table(moved, predicted));
    text += traffic_verdict();
  }
  std::vector<std::string> without;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].idle) without.push_back(cat(rank));
  }
  if (!without.empty()) {
    text += cat("\nnote: fewer sequences than ranks; rank ", join(without, ", "), " was idle. Use --batch ",
                ranks.size(), " or more\n");
  }
  if (!sample.empty()) text += cat("\nsample\n------\n", sample, "\n------\n");
  return text + cat("\nmodel written to ", out, "\n");
}

std::string TrainSummary::to_json() const {
  using nlohmann::json;
  json out_json = {{"layout", layout},
                   {"stash", stash},
                   {"dtype", dtype},
                   {"parameters", num_parameters},
                   {"tokens_per_step", tokens_per_step},
                   {"flops_per_step", flops_per_step},
                   {"median_step_seconds", median_step()},
                   {"tokens_per_second", tokens_per_step / median_step()},
                   {"matmul_peak_flops", matmul_peak()},
                   {"share_of_matmul_peak", flops_per_step / median_step() / matmul_peak()},
                   {"startup_seconds", startup_seconds},
                   {"losses", losses},
                   {"out", out},
                   {"sample", sample}};
  out_json["validation"] = json::array();
  for (const auto& [step, loss] : valid_losses)
    out_json["validation"].push_back({{"after_step", step}, {"loss", loss}});
  out_json["fold"] = json::parse(fold);
  out_json["traffic_as_predicted"] = traffic_differences(predicted, mean_ledger(ranks)).empty();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    json moved = json::array();
    for (const LedgerRow& row : ranks[rank].moved) {
      json booked = traffic_json(row);
      booked.update({{"copied_bytes", row.copied}, {"waited_seconds", row.waited}, {"skew_seconds", row.skew}});
      moved.push_back(booked);
    }
    out_json["ranks"].push_back({{"rank", rank},
                                 {"peak_bytes", ranks[rank].peak.total},
                                 {"peak_by_category", categories_json(ranks[rank].peak)},
                                 {"idle", ranks[rank].idle},
                                 {"moved", moved}});
  }
  return out_json.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace octavo::cli
