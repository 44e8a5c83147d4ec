// A case's "input" as a run of a framework.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "octavo/validation/framework_memory.h"

namespace octavo {

struct GoldenRun {
  const MemoryRules* rules;
  FrameworkRun run;
};

/// Or, in words, why that cannot be told. `input` has been checked to be an object.
std::variant<GoldenRun, std::string> golden_run(const nlohmann::json& input, const nlohmann::json& models);

}  // namespace octavo
