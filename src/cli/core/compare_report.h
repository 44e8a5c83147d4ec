// What `octavo compare` says, before it is printed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "octavo/plan/advice.h"
#include "octavo/plan/strategy_steps.h"

namespace octavo::cli {

/// One training step of each layout at one length.
struct LengthSteps {
  std::int64_t sequence_length;
  std::vector<StrategyStep> steps;  // as CompareReport::layouts
  std::vector<std::size_t> front;   // of what fits: not beaten in step time and headroom both, fastest first
};

struct CompareReport {
  PlanRequest request;  // its length is that of no step in particular
  std::string rules_note;
  int degree = 0;
  StashPolicy stash;
  std::optional<StrategyLayer> layer;  // absent: the model has no layer that the closed form covers
  std::vector<ComparedLayout> layouts;
  std::vector<LengthSteps> lengths;  // ascending, at least one

  Confidence confidence;  // in the steps of fold, the strategy that no published run had

  /// Each strategy once: those of `layouts`, of fold the form that moves weights, without ZeRO but for data.
  std::vector<StrategyRanks> strategies() const;
  /// The longest length at which anything fits.
  const LengthSteps* longest_that_fits() const;
};

/// "tensor=4 sequence=2" for two axes, else the strategy's title.
std::string strategy_label(const StrategyRanks& ranks);

/// Whether data ranks, which take whole sequences, have any part in one layer's numbers.
bool has_share(const CompareReport& report, const StrategyRanks& ranks);

std::string compare_text(const CompareReport& report);
nlohmann::json compare_json(const CompareReport& report);
/// An SVG file: memory against length, and step time against headroom at the longest length at which anything fits.
std::string compare_plot(const CompareReport& report);

}  // namespace octavo::cli
