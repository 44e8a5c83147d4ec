// Narrow values added to wide sums.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

/// sum[i] += addend[i]. They must not overlap.
void accumulate(const Bf16* addend, std::int64_t n, float* sum);

}  // namespace octavo::ops::kernels
