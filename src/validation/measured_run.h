// A case of published step times as something the time model can price.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "octavo/mesh/cluster.h"
#include "octavo/plan/job.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

struct MeasuredRun {
  ModelSpec model;
  TrainingJob job;
  StepPlan plan;
  Cluster cluster;
  std::string software;  // of plan/time_rules.h
};

/// Or, in words, why the case does not say enough, or asks for what no layout can say. `input`: a case's, an object.
/// `note`: the case's, or "". Nothing is decided by a case's id.
std::variant<MeasuredRun, std::string> measured_run(const nlohmann::json& input, const nlohmann::json& models,
                                                    const std::string& note);

}  // namespace octavo
