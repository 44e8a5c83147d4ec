// Flat loops of the optimizer.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

/// One step's constants, worked out in double.
template <class S>
struct AdamWFactors {
  S gradient_scale;  // g = gradient_scale * given gradient
  S decay;           // w is multiplied by it first: 1 - lr * weight_decay
  S beta1, one_minus_beta1;
  S beta2, one_minus_beta2;
  S inverse_root_correction2;  // 1 / sqrt(1 - beta2^step)
  S eps;
  S step_size;  // lr / (1 - beta1^step)
};

/// w, m, v [n] in place; g [n]. S: float or double.
template <class S>
void adamw(S* w, S* m, S* v, const S* g, std::int64_t n, const AdamWFactors<S>& factors);

/// The same for float, with the new weights rounded into compute [n].
void adamw_with_copy(float* w, float* m, float* v, const float* g, Bf16* compute, std::int64_t n,
                     const AdamWFactors<float>& factors);

/// Sum of squares in double. T: float, double or Bf16.
template <class T>
double sum_of_squares(const T* values, std::int64_t n);

}  // namespace octavo::ops::kernels
