// What a training run has to say at its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/rank_summary.h"
#include "octavo/base/units.h"

namespace octavo::cli {

/// Filled by rank 0.
struct TrainSummary {
  std::string layout, stash, dtype, out, sample, fold;  // fold: JSON
  std::int64_t num_parameters = 0, tokens_per_step = 0;
  Flops flops_per_step = 0;
  std::chrono::steady_clock::time_point start;
  Seconds startup_seconds = 0;
  std::vector<Seconds> step_seconds;
  std::vector<double> losses;
  std::vector<std::pair<std::int64_t, double>> valid_losses;  // after step, loss

  std::vector<RankSummary> ranks;
  std::vector<LedgerRow> predicted;  // what the layout's formulas say that a rank moves, mean over the ranks

  std::string to_text() const;
  std::string to_json() const;

 private:
  double median_step() const;
  double matmul_peak() const;
  std::string traffic_verdict() const;
};

}  // namespace octavo::cli
