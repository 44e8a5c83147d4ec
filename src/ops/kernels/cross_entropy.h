// Rows of logits of a block of the vocabulary. T: float, double or Bf16.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

/// log of the sum of exp over one row of `n` logits, merged into `lse` (-inf: nothing yet).
template <class T>
ComputeType<T> merged_log_sum_exp(const T* logits, std::int64_t n, ComputeType<T> lse);

/// logits <- scale * exp(logits - lse), in place.
template <class T>
void scaled_softmax(T* logits, std::int64_t n, ComputeType<T> lse, ComputeType<T> scale);

}  // namespace octavo::ops::kernels
