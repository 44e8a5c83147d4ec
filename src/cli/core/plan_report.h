// What `octavo plan` says, before it is printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octavo/plan/advice.h"

namespace octavo::cli {

// What --zero and --schedules take, and a plan says of its space.
inline constexpr std::pair<std::string_view, ZeroStage> kZeroWords[] = {
    {"zero0", ZeroStage::None}, {"zero1", ZeroStage::Optimizer}, {"zero3", ZeroStage::Weights}};
inline constexpr std::pair<std::string_view, PipelineForm> kScheduleWords[] = {
    {"1f1b", PipelineForm::OneForwardOneBackward},
    {"gpipe", PipelineForm::AllForward},
    {"zb", PipelineForm::ZeroBubble},
    {"interleaved", PipelineForm::Interleaved}};

/// One plan in full.
struct PlanDetail {
  PricedPlan priced;
  Bytes limit = 0;
  std::vector<PlanChange> changes;  // where it does not fit: the smallest that make it, fastest first
  bool fits() const { return priced.memory.total() <= limit; }
};

struct PlanReport {
  PlanRequest request;
  std::string rules_note;            // what constants were taken, where the software has none for this accelerator
  std::optional<PlanDetail> detail;  // of the layout that was asked for, else of the best
  bool is_asked = false;             // a layout was
  SearchSpace space;
  std::size_t top = 10;  // of the best, that are listed
  SearchResult found;    // the best beside a layout that was asked for
  // Where none was
  std::vector<StrategyReach> reach;
  std::vector<Sensitivity> sensitivity;
  std::vector<LengthWinner> winners;
  std::vector<SizeWinner> sizes;
  Confidence confidence;
};

std::string plan_text(const PlanReport& report);
nlohmann::json plan_json(const PlanReport& report);

/// Every constant behind a plan: unit, direction, source, date.
std::string constants_text(const PlanRequest& request);
nlohmann::json constants_json(const PlanRequest& request);

/// The plan as options of `octavo train --config`, with the line that starts it. Throws UsageError for a layout that
/// the engine does not run yet, and a file that cannot be written; what stood in it stays then.
void emit_plan(const PlanReport& report, const std::string& model_path, const std::string& file);

}  // namespace octavo::cli
