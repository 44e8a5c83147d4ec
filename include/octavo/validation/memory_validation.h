// Published peaks of memory against what the rules of their framework say (validation/framework_memory.h).
//
// A file is one of tests/data/golden/memory_measured.json's form: cases with "input" (what was run; null or absent is
// unknown) and "expect" (what was seen). A figure gets a row; it is left out, with the reason, where the configuration
// does not say enough (a model without dimensions, no framework, an unclear recompute policy) or asks for something
// that no rule covers. Nothing is decided by a case's id.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "octavo/validation/validation_row.h"

namespace octavo {

/// One row per figure of each case, in the file's order. Throws UsageError for a file that is not of that form.
std::vector<ValidationRow> validate_memory(const nlohmann::json& file);

}  // namespace octavo
