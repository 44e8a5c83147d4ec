#include "octavo/ops/rms_norm.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "octavo/base/error.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

namespace {

constexpr double kEps = 1e-5;

void check_against_naive(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& w) {
  const double tolerance = tolerance_of(x.scalar_type());
  const ops::RmsNormResult fast = ops::rms_norm_forward(x, w, kEps);
  const ops::RmsNormResult naive = ops::rms_norm_forward_naive(x, w, kEps);
  CHECK(name_of(fast.y.scalar_type()) == name_of(x.scalar_type()));
  CHECK(fast.y.is_contiguous());
  CHECK(distance(fast.y, naive.y) <= tolerance);
  CHECK(distance(fast.rstd, naive.rstd) <= kFloat32Tolerance);
  const ops::RmsNormGradient fast_gradient = ops::rms_norm_backward(dy, x, w, naive.rstd);
  const ops::RmsNormGradient naive_gradient = ops::rms_norm_backward_naive(dy, x, w, naive.rstd);
  CHECK(distance(fast_gradient.dx, naive_gradient.dx) <= tolerance);
  CHECK(name_of(fast_gradient.dw.scalar_type()) == name_of(naive_gradient.dw.scalar_type()));
  CHECK(distance(fast_gradient.dw, naive_gradient.dw) <= 5 * kFloat32Tolerance);
}

}  // namespace

TEST_CASE("RMSNorm's fast form equals the naive one for every dtype and odd widths") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t width : {1, 7, 16, 33, 64, 512}) {
      CAPTURE(name_of(dtype));
      CAPTURE(width);
      check_against_naive(values({130, width}, dtype, 1), values({130, width}, dtype, 2), values({width}, dtype, 3));
    }
  }
}

TEST_CASE("RMSNorm takes rows of any strides and a float32 weight beside bfloat16") {
  const at::Tensor matrix = values({6, 3, 5, 24}, at::kBFloat16, 4);
  const at::Tensor queries = matrix.narrow(2, 0, 3);  // [6, 3, 3, 24] with gaps
  const at::Tensor keys = matrix.select(2, 3);        // [6, 3, 24]
  check_against_naive(queries, values({6, 3, 3, 24}, at::kBFloat16, 5), values({24}, at::kFloat, 6));
  check_against_naive(keys, keys.transpose(0, 1).contiguous().transpose(0, 1), values({24}, at::kBFloat16, 7));
  CHECK_THROWS_AS(ops::rms_norm_forward(keys.transpose(1, 2), values({3}, at::kBFloat16, 1), kEps), InternalError);
}

TEST_CASE("RMSNorm of no rows is legal") {
  const at::Tensor x = at::empty({0, 8});
  const at::Tensor w = at::ones({8});
  const ops::RmsNormResult result = ops::rms_norm_forward(x, w, kEps);
  CHECK(result.y.sizes() == x.sizes());
  const ops::RmsNormGradient gradient = ops::rms_norm_backward(x, x, w, result.rstd);
  CHECK(gradient.dx.sizes() == x.sizes());
  CHECK(gradient.dw.abs().max().item<double>() == 0);
}

TEST_CASE("RMSNorm's naive backward is autograd's") {
  const at::Tensor x = values({9, 12}, at::kDouble, 1).requires_grad_();
  const at::Tensor w = values({12}, at::kDouble, 2).requires_grad_();
  const at::Tensor dy = values({9, 12}, at::kDouble, 3);
  const at::Tensor y = w * x * at::rsqrt(at::mean(x * x, -1, true) + kEps);
  const auto expected = torch::autograd::grad({y}, {x, w}, {dy});
  const ops::RmsNormResult forward = ops::rms_norm_forward_naive(x.detach(), w.detach(), kEps);
  CHECK(distance(forward.y, y.detach()) <= kFloat64Tolerance);
  const ops::RmsNormGradient gradient = ops::rms_norm_backward_naive(dy, x.detach(), w.detach(), forward.rstd);
  CHECK(distance(gradient.dx, expected[0]) <= kFloat64Tolerance);
  CHECK(distance(gradient.dw, expected[1]) <= kFloat64Tolerance);
}

TEST_CASE("ops leave no autograd history behind") {
  const at::Tensor x = values({3, 8}, at::kFloat, 1).requires_grad_();
  CHECK_FALSE(ops::rms_norm_forward(x, at::ones({8}), kEps).y.requires_grad());
  CHECK_FALSE(ops::rms_norm_forward_naive(x, at::ones({8}), kEps).y.requires_grad());
}
