#include <algorithm>
#include <map>

#include "cli/core/validation.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

/// Six digits at most, as published figures have.
std::string figure(double value) {
  const double size = value < 0 ? -value : value;
  return fixed(value, size >= 1000 ? 0 : size >= 10 ? 2 : 3);
}

std::string unit_of(const std::string& quantity) {
  if (quantity == "step_s") return " s";
  if (quantity == "time_us") return " us";
  if (quantity == "tokens_per_s_per_gpu") return " tokens/s";
  if (quantity == "max_sequence_length") return " tokens";
  if (quantity.find("gib") != std::string::npos || quantity.starts_with("gpu_memory")) return " GiB";
  if (quantity.find("mib") != std::string::npos) return " MiB";
  if (quantity.find("gb_per_s") != std::string::npos) return " GB/s";
  if (quantity.find("gb") != std::string::npos) return " GB";
  if (quantity.starts_with("bytes")) return " B";
  return "";
}

std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "| " + join(header, " | ") + " |\n|";
  for (std::size_t i = 0; i < header.size(); ++i) text += "---|";
  text += "\n";
  for (const std::vector<std::string>& row : rows) text += "| " + join(row, " | ") + " |\n";
  return text + "\n";
}

/// Left out, by reason: how many, and the first.
std::string left_out(const std::vector<ValidationRow>& rows) {
  std::map<std::string, std::pair<int, std::string>> reasons;
  for (const ValidationRow& row : rows) {
    if (row.is_used()) continue;
    auto& [count, first] = reasons[row.why];
    if (count++ == 0) first = row.id;
  }
  if (reasons.empty()) return "";
  std::vector<std::vector<std::string>> lines;
  for (const auto& [why, found] : reasons) lines.push_back({cat(found.first), why, found.second});
  return "Left out:\n\n" + table({"rows", "reason", "the first"}, lines);
}

/// Lists of more than these many lines are cut.
constexpr std::size_t kMostLines = 20;

std::string identity_text(const IdentityReport& report) {
  if (report.cases == 0 && report.left_out.empty()) return "";
  std::string text = cat("Identities: ", report.figures - static_cast<int>(report.wrong.size()), " of ", report.figures,
                         " figures of ", report.cases, " cases are the same.\n\n");
  const auto list = [&text](const char* what, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text += cat(what, "\n\n");
    for (std::size_t i = 0; i < lines.size() && i < kMostLines; ++i) text += "- " + lines[i] + "\n";
    if (lines.size() > kMostLines) text += cat("- and ", lines.size() - kMostLines, " more (--json lists all)\n");
    text += "\n";
  };
  list("Other than published:", report.wrong);
  list("Not compared:", report.left_out);
  return text;
}

std::string counts(const std::vector<ValidationRow>& rows) {
  const auto used = std::count_if(rows.begin(), rows.end(), [](const ValidationRow& row) { return row.is_used(); });
  return cat(used, " of ", rows.size(), " published figures used.\n\n");
}

std::string row_table(const std::vector<ValidationRow>& rows, const std::vector<double>* baseline) {
  std::vector<std::string> header{"row", "quantity", "published", "predicted", "error"};
  header.push_back(baseline == nullptr ? "allowed" : "baseline");
  header.push_back("with");
  std::vector<std::vector<std::string>> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ValidationRow& row = rows[i];
    if (!row.is_used()) continue;
    const std::string unit = unit_of(row.quantity);
    lines.push_back({row.id, row.quantity, figure(row.published) + unit, figure(*row.predicted) + unit,
                     percent(row.error()), percent(baseline == nullptr ? row.tolerance : (*baseline)[i]), row.why});
  }
  return table(header, lines);
}

std::string source_table(const TimeValidation& time) {
  std::vector<std::vector<std::string>> lines;
  for (const SourceError& source : time.sources) {
    const auto noise = std::find_if(time.noise.begin(), time.noise.end(),
                                    [&](const NoiseFloor& floor) { return floor.source == source.source; });
    lines.push_back({source.source, cat(source.rows), percent(source.mean), percent(source.most),
                     percent(source.baseline_mean), percent(source.baseline_most),
                     noise == time.noise.end() ? "no equal rows" : cat(percent(noise->mean), " of ", noise->rows),
                     source.limit ? percent(*source.limit) : "none"});
  }
  return "Errors without sign. Baseline: one efficiency per accelerator, the median of what its rows reached, times\n"
         "FLOPs and (1 + bubble). Noise: what rows of equal inputs differ by.\n\n" +
         table({"source", "rows", "mean", "most", "baseline mean", "baseline most", "noise", "limit of the mean"},
               lines);
}

std::string rules_table(const TimeValidation& time) {
  std::vector<std::vector<std::string>> lines;
  for (const RulesError& rules : time.rules) {
    std::vector<std::string> axes;
    for (const Axis axis : rules.axes) axes.emplace_back(axis_name(axis));
    lines.push_back({rules.software, rules.accelerator, cat(rules.rows), cat(rules.configurations), percent(rules.mean),
                     percent(rules.most), axes.empty() ? "none" : join(axes, ", ")});
  }
  return "The same by set of constants. Rows of one configuration differ in batch and data ranks alone.\n\n" +
         table({"software", "accelerator", "rows", "configurations", "mean", "most", "axes above 1"}, lines);
}

std::string order_text(const TimeValidation& time) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> wrong;
  for (const PairOrder& order : time.groups) {
    lines.push_back({order.group, cat(order.pairs), cat(order.right)});
    wrong.insert(wrong.end(), order.wrong.begin(), order.wrong.end());
  }
  std::string text = "Pairs of a group that are more than 10 % apart, and how many are in order:\n\n" +
                     table({"group", "pairs", "in order"}, lines);
  if (!wrong.empty()) text += "Not in order:\n\n";
  for (const std::string& pair : wrong) text += "- " + pair + "\n";
  return wrong.empty() ? text : text + "\n";
}

std::string ranking_text(const TimeValidation& time) {
  if (time.rankings.empty()) return "";
  std::vector<std::vector<std::string>> lines;
  for (const RankingResult& ranking : time.rankings) {
    lines.push_back({ranking.id, ranking.is_used() ? (ranking.best_is_right ? "found" : "another") : "left out",
                     ranking.is_used() ? fixed(ranking.tau, 2) : "",
                     ranking.is_used() ? join(ranking.predicted, ", ") : ranking.why});
  }
  return "Published rankings:\n\n" + table({"ranking", "best layout", "Kendall tau", "predicted, best first"}, lines);
}

}  // namespace

std::string validation_text(std::span<const FileReport> reports) {
  std::string text = "# Published figures and predictions\n\n";
  text +=
      "Printed by `octavo plan --validate`. Constants belong to a software on an accelerator, never to a row\n"
      "(`octavo plan --constants`); rows are left out by what they lack, never by name.\n\n";
  for (const FileReport& report : reports) {
    text += cat("## ", report.name, "\n\n", report.title, report.title.empty() ? "" : ".\n\n");
    if (!report.note.empty()) text += cat(report.note, ".\n\n");
    if (!report.why.empty()) {
      text += cat("Not compared: ", report.why, ".\n\n");
      continue;
    }
    text += identity_text(report.identities);
    if (report.time) {
      text += counts(report.time->rows) + source_table(*report.time) + rules_table(*report.time) +
              order_text(*report.time) + ranking_text(*report.time) + left_out(report.time->rows) +
              row_table(report.time->rows, &report.time->baseline);
    } else if (!report.rows.empty()) {
      text += counts(report.rows) + left_out(report.rows) + row_table(report.rows, nullptr);
    }
  }
  text += "## Beyond a limit\n\n";
  bool any = false;
  for (const FileReport& report : reports) {
    for (const std::string& failure : report.failures) {
      text += cat("- ", report.name, ": ", failure, "\n");
      any = true;
    }
  }
  return any ? text : text + "Nothing.\n";
}

}  // namespace octavo::cli
