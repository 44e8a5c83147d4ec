// Published times of collectives, and rates of copies between two accelerators, against plan/collective_time.h.
//
// A file has the form of tests/data/golden/hardware.json; its catalogue and its identities are not measurements and
// have no row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "octavo/validation/validation_row.h"

namespace octavo {

/// One row per measurement: microseconds of a collective, or GB/s of a copy. Throws UsageError for a file that is not
/// of that form.
std::vector<ValidationRow> validate_collectives(const nlohmann::json& file);

}  // namespace octavo
