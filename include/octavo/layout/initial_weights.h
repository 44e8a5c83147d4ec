// Weights of a model trained from scratch: a function of (seed, name, element index), so that every layout starts from
// the same model.
#pragma once

#include <cstdint>
#include <span>

#include "octavo/layout/param_table.h"

namespace octavo {

/// Fills `rows` with rows [first_row, ...) of the checkpoint matrix of `parameter` (whole rows of matrix_columns()).
void fill_initial_rows(const Parameter& parameter, std::uint64_t seed, std::int64_t first_row, std::span<float> rows);

}  // namespace octavo
