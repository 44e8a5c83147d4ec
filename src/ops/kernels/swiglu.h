// The gate of a gated MLP over one row of `n` features. T: float, double or Bf16.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

template <class T>
void swiglu_forward(const T* gate, const T* up, std::int64_t n, T* y);

template <class T>
void swiglu_backward(const T* dy, const T* gate, const T* up, std::int64_t n, T* dgate, T* dup);

}  // namespace octavo::ops::kernels
