// What one rank has to say at the end of a run, and how that travels to rank 0.
#pragma once

#include <string>
#include <vector>

#include "octavo/memory/account.h"
#include "octavo/trace/ledger.h"

namespace octavo::cli {

struct RankSummary {
  double matmul_peak = 0;  // FLOP/s, measured at once by the ranks that have a core; else 0
  bool idle = false;       // the rank had no sequence in some step
  MemorySnapshot peak;
  std::vector<LedgerRow> moved;
};

std::string to_bytes(const RankSummary& summary);
RankSummary rank_summary_from(const std::string& bytes);

/// Rows added up by group, purpose and kind, and divided by the number of ranks.
std::vector<LedgerRow> mean_ledger(const std::vector<RankSummary>& ranks);

}  // namespace octavo::cli
