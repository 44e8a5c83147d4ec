// Gradient sums are wider than the products that are added to them.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo::ops {

/// sum += addend, elementwise; equal shapes, both contiguous. sum: float32 or float64; addend: the same, or bfloat16
/// into float32 without the float32 copy of it that libtorch's add_ would make.
void accumulate_(const at::Tensor& sum, const at::Tensor& addend);

}  // namespace octavo::ops
