#include "cli/rank_summary.h"

#include <nlohmann/json.hpp>

namespace octavo::cli {

using nlohmann::json;

std::string to_bytes(const RankSummary& summary) {
  json moved = json::array();
  for (const LedgerRow& row : summary.moved) {
    moved.push_back({row.group, static_cast<int>(row.purpose), static_cast<int>(row.kind), row.count, row.logical,
                     row.copied, row.waited, row.skew});
  }
  return json{{"matmul_peak", summary.matmul_peak},
              {"idle", summary.idle},
              {"peak", summary.peak.total},
              {"peak_by_category", summary.peak.by_category},
              {"moved", moved}}
      .dump();
}

RankSummary rank_summary_from(const std::string& bytes) {
  const json read = json::parse(bytes);
  RankSummary summary{.matmul_peak = read["matmul_peak"], .idle = read["idle"], .peak = {}, .moved = {}};
  summary.peak.total = read["peak"];
  summary.peak.by_category = read["peak_by_category"];
  for (const json& row : read["moved"]) {
    summary.moved.push_back({.group = row[0],
                             .purpose = static_cast<Purpose>(row[1].get<int>()),
                             .kind = static_cast<Collective>(row[2].get<int>()),
                             .count = row[3],
                             .logical = row[4],
                             .copied = row[5],
                             .waited = row[6],
                             .skew = row[7]});
  }
  return summary;
}

std::vector<LedgerRow> mean_ledger(const std::vector<RankSummary>& ranks) {
  std::vector<LedgerRow> sum;
  for (const RankSummary& rank : ranks) add_rows(sum, rank.moved);
  const auto num_ranks = static_cast<std::int64_t>(ranks.size());
  for (LedgerRow& row : sum) {
    row.count /= num_ranks;
    row.logical /= num_ranks;
    row.copied /= num_ranks;
    row.waited /= static_cast<double>(num_ranks);
    row.skew /= static_cast<double>(num_ranks);
  }
  return sum;
}

}  // namespace octavo::cli
