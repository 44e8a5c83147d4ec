// RMSNorm row by row. Letters: N rows, C width. T: float, double or Bf16.
#pragma once

#include <cstdint>

#include "ops/kernels/rows.h"
#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

/// x: rows as `rows` says -> y [N, C], rstd [N]; w [C].
template <class T>
void rms_norm_forward(const T* x, const Rows& rows, const ComputeType<T>* w, double eps, std::int64_t width, T* y,
                      ComputeType<T>* rstd);

/// dy and x: as many rows each -> dx [N, C], dw [C]. scratch [C] is overwritten.
template <class T>
void rms_norm_backward(const T* dy, const Rows& dy_rows, const T* x, const Rows& x_rows, const ComputeType<T>* w,
                       const ComputeType<T>* rstd, std::int64_t width, T* dx, ComputeType<T>* dw,
                       ComputeType<T>* scratch);

}  // namespace octavo::ops::kernels
