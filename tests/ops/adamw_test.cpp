#include "octavo/ops/adamw.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "octavo/base/error.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

namespace {

struct State {
  at::Tensor w, m, v;
};

State start(std::int64_t n, at::ScalarType dtype) {
  return {values({n}, dtype, 1), at::zeros({n}, dtype), at::zeros({n}, dtype)};
}

ops::AdamWOptions options_of_step(std::int64_t step) {
  return {.learning_rate = 1e-2 / static_cast<double>(step), .weight_decay = 0.1, .gradient_scale = 0.7, .step = step};
}

/// The update as its paper writes it, one element at a time.
void by_hand(std::vector<double>& w, std::vector<double>& m, std::vector<double>& v, const at::Tensor& g,
             const ops::AdamWOptions& o) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double gradient = o.gradient_scale * g[static_cast<std::int64_t>(i)].item<double>();
    m[i] = o.beta1 * m[i] + (1 - o.beta1) * gradient;
    v[i] = o.beta2 * v[i] + (1 - o.beta2) * gradient * gradient;
    const double m_hat = m[i] / (1 - std::pow(o.beta1, static_cast<double>(o.step)));
    const double v_hat = v[i] / (1 - std::pow(o.beta2, static_cast<double>(o.step)));
    w[i] -= o.learning_rate * o.weight_decay * w[i];
    w[i] -= o.learning_rate * m_hat / (std::sqrt(v_hat) + o.eps);
  }
}

}  // namespace

TEST_CASE("five AdamW steps equal the formula written by hand, in both forms") {
  const std::int64_t n = 37;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    State fast = start(n, dtype), naive = start(n, dtype);
    const at::Tensor first = fast.w.to(at::kDouble);
    std::vector<double> w(first.data_ptr<double>(), first.data_ptr<double>() + n), m(n, 0.0), v(n, 0.0);
    for (std::int64_t step = 1; step <= 5; ++step) {
      const at::Tensor g = values({n}, dtype, 10 + static_cast<double>(step)) * 0.01;
      ops::adamw_(fast.w, fast.m, fast.v, g, {}, options_of_step(step));
      ops::adamw_naive_(naive.w, naive.m, naive.v, g, {}, options_of_step(step));
      by_hand(w, m, v, g.to(at::kDouble), options_of_step(step));
    }
    const double tolerance = tolerance_of(dtype);
    CHECK(distance(fast.w, at::tensor(w, at::kDouble)) <= tolerance);
    CHECK(distance(naive.w, at::tensor(w, at::kDouble)) <= tolerance);
    CHECK(distance(fast.m, at::tensor(m, at::kDouble)) <= tolerance);
    CHECK(distance(fast.v, at::tensor(v, at::kDouble)) <= tolerance);
  }
}

TEST_CASE("AdamW decays weights without a gradient by the rate alone") {
  State state = start(20, at::kDouble);
  const at::Tensor before = state.w.clone();
  ops::adamw_(state.w, state.m, state.v, at::zeros({20}, at::kDouble), {},
              {.learning_rate = 0.1, .weight_decay = 0.5, .step = 3});
  CHECK(distance(state.w, before * 0.95) <= kFloat64Tolerance);
}

TEST_CASE("AdamW's bfloat16 copy is the rounded weight") {
  State state = start(51, at::kFloat);
  const at::Tensor copy = at::zeros({51}, at::kBFloat16);
  ops::adamw_(state.w, state.m, state.v, values({51}, at::kFloat, 2), copy, options_of_step(1));
  CHECK(copy.eq(state.w.to(at::kBFloat16)).all().item<bool>());
  State wide = start(51, at::kDouble);
  CHECK_THROWS_AS(ops::adamw_(wide.w, wide.m, wide.v, wide.w, copy, options_of_step(1)), InternalError);
  CHECK_THROWS_AS(ops::adamw_(state.w, state.m, state.v, state.w, {}, options_of_step(0)), InternalError);
}

TEST_CASE("AdamW over parts of an interval is AdamW over the interval") {
  State whole = start(100, at::kFloat), cut = start(100, at::kFloat);
  const at::Tensor g = values({100}, at::kFloat, 3);
  ops::adamw_(whole.w, whole.m, whole.v, g, {}, options_of_step(1));
  for (const auto& [begin, length] : {std::pair{0, 33}, std::pair{33, 66}, std::pair{99, 1}, std::pair{100, 0}}) {
    at::Tensor w = cut.w.narrow(0, begin, length), m = cut.m.narrow(0, begin, length),
               v = cut.v.narrow(0, begin, length);
    ops::adamw_(w, m, v, g.narrow(0, begin, length), {}, options_of_step(1));
  }
  CHECK(at::equal(whole.w, cut.w));
  CHECK(at::equal(whole.v, cut.v));
}

TEST_CASE("the sum of squares is taken in float64 for every dtype and length") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t n : {0, 1, 15, 16, 1001}) {
      const at::Tensor x = values({n}, dtype, 4);
      const at::Tensor wide = x.to(at::kDouble);
      CHECK(ops::sum_of_squares(x) == doctest::Approx((wide * wide).sum().item<double>()).epsilon(1e-13));
    }
  }
  CHECK(ops::sum_of_squares(at::full({3}, 1e30f)) == doctest::Approx(3e60));
}
