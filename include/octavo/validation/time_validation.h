// Published step times against what the time model says of the same runs (plan/step_time.h).
//
// A file has the form of tests/data/golden/measured_step_times.json. Rows that are used: bf16, dense models, complete
// configurations with a known recompute policy, software with constants (plan/time_rules.h). Others are left out with
// the reason. Nothing is decided by a row's id.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "octavo/mesh/axis.h"
#include "octavo/validation/validation_row.h"

namespace octavo {

/// Errors are relative and without sign. `limit`: of the mean, where the project has promised one.
struct SourceError {
  std::string source;
  int rows = 0;
  double mean = 0, most = 0;
  double baseline_mean = 0, baseline_most = 0;  // one efficiency per accelerator, times FLOPs and (1 + bubble)
  std::optional<double> limit = {};
  bool is_within() const { return !limit || mean <= *limit; }
};

/// Rows of one group that are more than 10 % apart in tokens per second and accelerator: how many pairs are in order.
struct PairOrder {
  std::string group;
  int pairs = 0, right = 0;
  std::vector<std::string> wrong = {};  // of the other pairs, a line each
};

/// A published order of layouts.
struct RankingResult {
  std::string id;
  std::string why;  // left out: the reason
  bool best_is_right = false;
  double tau = 0;                      // Kendall's, of the whole order
  std::vector<std::string> predicted;  // best first
  bool is_used() const { return why.empty(); }
};

/// Rows of which all inputs are equal: what no model of these inputs can tell apart.
struct NoiseFloor {
  std::string source;
  int rows = 0;     // in groups of at least two
  double mean = 0;  // error of the best single prediction per group
};

/// What one set of constants (plan/time_rules.h) makes of its rows.
struct RulesError {
  std::string software, accelerator;
  int rows = 0;
  int configurations = 0;  // of the rows: those that differ in batch and data ranks alone count as one
  double mean = 0, most = 0;
  std::vector<Axis> axes;  // above 1 in any of them
};

struct TimeValidation {
  std::vector<ValidationRow> rows;
  std::vector<double> baseline;  // per row, relative error; 0 where it is left out
  std::vector<SourceError> sources;
  std::vector<RulesError> rules;  // of sets with runs of their own, in the order of the table
  std::vector<PairOrder> groups;
  std::vector<RankingResult> rankings;
  std::vector<NoiseFloor> noise;
};

/// Throws UsageError for a file that is not of that form.
TimeValidation validate_time(const nlohmann::json& file);

}  // namespace octavo
