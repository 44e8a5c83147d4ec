// The gate of a gated MLP: y = silu(gate) * up. Letters: T tokens, F features.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo::ops {

/// gate, up [T, F] -> [T, F]. Local.
at::Tensor swiglu_forward(const at::Tensor& gate, const at::Tensor& up);
at::Tensor swiglu_forward_naive(const at::Tensor& gate, const at::Tensor& up);

struct SwigluGradient {
  at::Tensor dgate, dup;  // [T, F]
};
SwigluGradient swiglu_backward(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up);
SwigluGradient swiglu_backward_naive(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up);

}  // namespace octavo::ops
