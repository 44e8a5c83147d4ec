// Rotation of the half-split pairs of one token's heads. T: float, double or Bf16.
#pragma once

#include <cstdint>

#include "ops/kernels/rows.h"
#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

/// Rotates the heads of x (rows of `width` elements) into the heads of y by the token's angles: cosine and sine
/// [width / 2]. direction: 1, or -1 for the transposed rotation. x and y must not overlap, or be the same heads.
template <class T>
void rotate_heads(const T* x, const Rows& x_heads, const ComputeType<T>* cosine, const ComputeType<T>* sine,
                  ComputeType<T> direction, std::int64_t width, T* y, const Rows& y_heads);

}  // namespace octavo::ops::kernels
