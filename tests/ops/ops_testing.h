// What the tests of ops/ share: reproducible values, distances, and the tolerances by name.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace octavo::testing {

// Distances relative to the largest element of the reference.
inline constexpr double kFloat64Tolerance = 1e-13;       // a few roundings of a short sum
inline constexpr double kFloat32Tolerance = 2e-6;        // sums of a few thousand terms in another order
inline constexpr double kBfloat16Tolerance = 1.0 / 128;  // one rounding to 8 bits, once more in the reference
inline constexpr double kDifferenceTolerance = 1e-7;     // central differences in float64

inline double tolerance_of(at::ScalarType dtype) {
  if (dtype == at::kDouble) return kFloat64Tolerance;
  return dtype == at::kFloat ? kFloat32Tolerance : kBfloat16Tolerance;
}

inline std::string name_of(at::ScalarType dtype) {
  return c10::toString(dtype);
}

inline constexpr at::ScalarType kDtypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

/// Smooth values in about [-1, 1] that depend on `seed`: no generator, so no test depends on another one.
inline at::Tensor values(std::vector<std::int64_t> sizes, at::ScalarType dtype, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor index = at::arange(count, at::kDouble);
  return at::sin(index * 1.7 + at::cos(index * (0.31 + 0.01 * seed)) * 5.0 + seed).reshape(sizes).to(dtype);
}

/// max |a - b| over max |b|; 0 for empty tensors; infinite unless all of `a` is finite and the shapes agree.
/// `at_least`: what the terms of b measure, where b itself may be all rounding (the gradient of a softmax of one).
inline double distance(const at::Tensor& a, const at::Tensor& b, double at_least = 0) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (b.numel() == 0) return 0;
  if (!a.isfinite().all().item<bool>()) return INFINITY;
  const at::Tensor reference = b.to(at::kDouble);
  const double largest = std::max(at_least, reference.abs().max().item<double>());
  return (a.to(at::kDouble) - reference).abs().max().item<double>() / (largest > 0 ? largest : 1);
}

/// d loss / d x by central differences, x float64.
inline at::Tensor difference_gradient(const at::Tensor& x, const std::function<double(const at::Tensor&)>& loss) {
  constexpr double kStep = 1e-5;
  const at::Tensor flat = x.contiguous().reshape({-1});
  at::Tensor gradient = at::zeros_like(flat);
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const auto moved = [&](double step) {
      at::Tensor copy = flat.clone();
      copy[i] += step;
      return loss(copy.reshape(x.sizes()));
    };
    gradient[i] = (moved(kStep) - moved(-kStep)) / (2 * kStep);
  }
  return gradient.reshape(x.sizes());
}

}  // namespace octavo::testing
