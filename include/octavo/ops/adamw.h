// One AdamW step over a flat interval of parameters (Loshchilov and Hutter, 2019; decoupled decay).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace octavo::ops {

struct AdamWOptions {
  double learning_rate;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.0;    // w *= 1 - lr * decay, before the update
  double gradient_scale = 1.0;  // every gradient is multiplied by it first (clipping)
  std::int64_t step = 1;        // 1 at the first update: bias correction
};

/// w, m, v, g [n], contiguous, float32 (or all float64); updated in place (g is not). update = lr * m^ / (sqrt(v^) +
/// eps). `compute` [n] bfloat16, if defined, receives the rounded new weights (float32 only). Local. On the meta
/// device: nothing but checks.
void adamw_(at::Tensor& w, at::Tensor& m, at::Tensor& v, const at::Tensor& g, at::Tensor compute,
            const AdamWOptions& options);
void adamw_naive_(at::Tensor& w, at::Tensor& m, at::Tensor& v, const at::Tensor& g, at::Tensor compute,
                  const AdamWOptions& options);

/// Sum of squares of x [n], in float64, in a fixed order. On meta: 0.
double sum_of_squares(const at::Tensor& x);

}  // namespace octavo::ops
