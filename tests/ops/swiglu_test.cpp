#include "octavo/ops/swiglu.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/kernels/simd.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

TEST_CASE("the gate's fast form equals the naive one for every dtype, odd widths and strided rows") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t width : {1, 15, 64, 131}) {
      CAPTURE(name_of(dtype));
      CAPTURE(width);
      const at::Tensor both = values({11, 2 * width}, dtype, 1) * 6;
      const at::Tensor gate = both.narrow(1, 0, width), up = both.narrow(1, width, width);
      const at::Tensor dy = values({11, width}, dtype, 2);
      CHECK(distance(ops::swiglu_forward(gate, up), ops::swiglu_forward_naive(gate, up)) <= tolerance_of(dtype));
      const ops::SwigluGradient fast = ops::swiglu_backward(dy, gate, up);
      const ops::SwigluGradient naive = ops::swiglu_backward_naive(dy, gate, up);
      CHECK(distance(fast.dgate, naive.dgate) <= tolerance_of(dtype));
      CHECK(distance(fast.dup, naive.dup) <= tolerance_of(dtype));
    }
  }
}

TEST_CASE("the gate stays finite for extreme inputs and keeps NaN visible") {
  const at::Tensor gate = at::tensor({-1e30, -200.0, -90.0, 90.0, 1e30, 0.0}, at::kFloat).reshape({1, 6});
  const at::Tensor up = at::ones({1, 6});
  const at::Tensor y = ops::swiglu_forward(gate, up);
  CHECK(distance(y.narrow(1, 0, 4), at::silu(gate).narrow(1, 0, 4)) <= kFloat32Tolerance);
  CHECK(ops::swiglu_backward(up, gate, up).dgate.isfinite().all().item<bool>());
  CHECK(ops::swiglu_forward(gate * NAN, up).isnan().all().item<bool>());
}

TEST_CASE("the gate's naive backward is autograd's") {
  const at::Tensor gate = (values({5, 9}, at::kDouble, 1) * 3).requires_grad_();
  const at::Tensor up = values({5, 9}, at::kDouble, 2).requires_grad_();
  const at::Tensor dy = values({5, 9}, at::kDouble, 3);
  const auto expected = torch::autograd::grad({at::silu(gate) * up}, {gate, up}, {dy});
  const ops::SwigluGradient gradient = ops::swiglu_backward_naive(dy, gate.detach(), up.detach());
  CHECK(distance(gradient.dgate, expected[0]) <= kFloat64Tolerance);
  CHECK(distance(gradient.dup, expected[1]) <= kFloat64Tolerance);
}

TEST_CASE("the gate of no tokens is legal") {
  const at::Tensor nothing = at::empty({0, 8});
  CHECK(ops::swiglu_forward(nothing, nothing).sizes() == nothing.sizes());
  CHECK(ops::swiglu_backward(nothing, nothing, nothing).dup.sizes() == nothing.sizes());
}

namespace {

/// The largest error of `approximate` against `exact` over [low, high], in units of the last place.
template <class Approximate, class Exact>
double worst_ulp(double low, double high, Approximate&& approximate, Exact&& exact) {
  double worst = 0;
  for (double x = low; x < high; x += 0.00137) {
    const float argument = static_cast<float>(x);
    const double expected = exact(static_cast<double>(argument));
    const float rounded = static_cast<float>(expected);
    const double ulp = std::nextafter(rounded, INFINITY) - static_cast<double>(rounded);
    worst = std::max(worst, std::abs(approximate(argument) - expected) / ulp);
  }
  return worst;
}

}  // namespace

TEST_CASE("the kernels' exponentials are within 2 ulp") {
  using ops::kernels::exponential;
  using ops::kernels::power_of_two;
  const auto ours = [](float x) { return static_cast<double>(exponential(x)); };
  const auto ours_of_two = [](float x) { return static_cast<double>(power_of_two(x)); };
  CHECK(worst_ulp(-87.3, 88.3, ours, [](double x) { return std::exp(x); }) < 2.0);
  CHECK(worst_ulp(-125.9, 126.9, ours_of_two, [](double x) { return std::exp2(x); }) < 2.0);
  for (const auto& function : {+[](float x) { return exponential(x); }, +[](float x) { return power_of_two(x); }}) {
    CHECK(function(-INFINITY) == 0.0f);
    CHECK(function(0.0f) == 1.0f);
    CHECK(std::isnan(function(NAN)));
  }
}

TEST_CASE("the kernels round to bfloat16 as libtorch does") {
  for (const float value : {1.0f, 1.00390625f, 1.01171875f, -3.1415927f, 3.4e38f, 1e-40f, 0.0f, INFINITY, -INFINITY}) {
    ops::kernels::Bf16 place;
    ops::kernels::store(place, value);
    CHECK(ops::kernels::load(place) == static_cast<float>(at::BFloat16(value)));
  }
  ops::kernels::Bf16 place;
  ops::kernels::store(place, NAN);
  CHECK(std::isnan(ops::kernels::load(place)));
}
