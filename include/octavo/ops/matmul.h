// Matrix products that count themselves: every product of activations and weights goes through one of these, so that
// a rank's account (memory/account.h) knows the FLOPs it executed.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo::ops {

/// a [M, K] by b [K, N] -> [M, N]; 2 M K N FLOPs. As at::mm, on CPU or meta.
at::Tensor mm(const at::Tensor& a, const at::Tensor& b);
/// The same into `out` [M, N].
void mm_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// sum [M, N] += a b.
void addmm_(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace octavo::ops
