// RMSNorm, plain form (models.md 4.2): y = w * cast(x * r), r = 1/sqrt(mean(x^2) + eps) in float32 (float64 for
// float64). Letters: N rows (tokens, or tokens times heads), C normalised width.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo::ops {

struct RmsNormResult {
  at::Tensor y;     // [.., C], dtype of x
  at::Tensor rstd;  // [..] without C, float32 (float64 for float64): kept for the backward
};

/// x [.., C] with up to three leading dimensions (they may be strided; the last dimension is contiguous), w [C] in x's
/// dtype or float32. Local.
RmsNormResult rms_norm_forward(const at::Tensor& x, const at::Tensor& w, double eps);

struct RmsNormGradient {
  at::Tensor dx;  // as x
  at::Tensor dw;  // [C], float32 (float64 for float64): the sum over rows
};
RmsNormGradient rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                                  const at::Tensor& rstd);

/// The same in plain libtorch calls, kept as the reference of the fast path.
RmsNormResult rms_norm_forward_naive(const at::Tensor& x, const at::Tensor& w, double eps);
RmsNormGradient rms_norm_backward_naive(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                                        const at::Tensor& rstd);

}  // namespace octavo::ops
