// Links the half that needs libtorch: silu(1) * 2 through one of octavo's operations.
#include <ATen/ATen.h>

#include <cmath>

#include "octavo/ops/swiglu.h"

int main() {
  const at::Tensor y = octavo::ops::swiglu_forward(at::ones({3, 4}), at::full({3, 4}, 2.0));
  const double expected = 2.0 / (1.0 + std::exp(-1.0));
  return (y - expected).abs().max().item<double>() < 1e-6 ? 0 : 1;
}
