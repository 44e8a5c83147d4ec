// `octavo plan --validate`: published figures beside predicted ones.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "octavo/validation/golden_folder.h"

namespace octavo::cli {

/// Prints the reports of a folder, as Markdown or as JSON, then checks its limits.
int run_validation(const std::string& folder, bool as_json);

/// Throws CheckFailed, naming the first, if anything is beyond its limit.
void check_within_limits(std::span<const FileReport> reports);

/// Markdown: docs/validation.md is that of tests/data/golden.
std::string validation_text(std::span<const FileReport> reports);
nlohmann::json validation_json(std::span<const FileReport> reports);

}  // namespace octavo::cli
