#include "octavo/ops/attention.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "octavo/base/error.h"
#include "ops/attention_plan.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;
using ops::AttentionPiece;

namespace {

constexpr double kScale = 0.3;
constexpr double kGradientSize = 1.0;  // of the terms that make up a gradient here

struct Case {
  std::int64_t num_queries, num_keys;
  std::vector<AttentionPiece> pieces;
  std::int64_t num_heads = 4, num_kv_heads = 2, width = 16;
};

/// bfloat16 attention rounds the weights before it sums them; both sides are held against the exact result.
double attention_tolerance(at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1e-12;
  return dtype == at::kFloat ? 1e-5 : 2.0 / 128;
}

void check_against_naive(const Case& c) {
  for (const at::ScalarType dtype : kDtypes) {
    CAPTURE(name_of(dtype));
    const double tolerance = attention_tolerance(dtype);
    const at::Tensor q = values({c.num_queries, c.num_heads, c.width}, dtype, 1) * 2;
    const at::Tensor k = values({c.num_keys, c.num_kv_heads, c.width}, dtype, 2) * 2;
    const at::Tensor v = values({c.num_keys, c.num_kv_heads, c.width}, dtype, 3);
    const at::Tensor dout = values({c.num_queries, c.num_heads, c.width}, dtype, 4);
    const ops::AttentionResult fast = ops::attention_forward(q, k, v, c.pieces, kScale);
    const ops::AttentionResult naive = ops::attention_forward_naive(q, k, v, c.pieces, kScale);
    CHECK(name_of(fast.out.scalar_type()) == name_of(dtype));
    CHECK(fast.out.is_contiguous());
    CHECK(fast.lse.is_contiguous());
    CHECK(distance(fast.out, naive.out) <= tolerance);
    const at::Tensor unseen = naive.lse.isinf();
    CHECK(fast.lse.isinf().eq(unseen).all().item<bool>());
    CHECK(distance(fast.lse.masked_fill(unseen, 0), naive.lse.masked_fill(unseen, 0)) <=
          (dtype == at::kDouble ? 1e-12 : 5e-6));
    const auto fast_gradient = ops::attention_backward(dout, q, k, v, naive, c.pieces, kScale);
    const auto naive_gradient = ops::attention_backward_naive(dout, q, k, v, naive, c.pieces, kScale);
    CHECK(distance(fast_gradient.dq, naive_gradient.dq, kGradientSize) <= tolerance);
    CHECK(distance(fast_gradient.dk, naive_gradient.dk, kGradientSize) <= tolerance);
    CHECK(distance(fast_gradient.dv, naive_gradient.dv, kGradientSize) <= tolerance);
  }
}

}  // namespace

TEST_CASE("plain causal attention equals the dense form at lengths around the blocks'") {
  for (const std::int64_t length : {1, 2, 15, 16, 17, 63, 64, 65, 130, 257, 300}) {
    CAPTURE(length);
    check_against_naive({length, length, {{0, length, 0, length, true}}});
  }
}

TEST_CASE("a zigzag chunk's prefix and diagonal merge into the dense result") {
  // Rank 1 of 3 holds chunks 1 and 4 of 6, each of 40 tokens, and sees all 240 keys.
  check_against_naive(
      {80, 240, {{0, 40, 0, 40, false}, {0, 40, 40, 40, true}, {40, 40, 0, 160, false}, {40, 40, 160, 40, true}}});
}

TEST_CASE("a causal piece with more keys than queries is aligned at the bottom right") {
  check_against_naive({40, 240, {{0, 40, 0, 200, true}}});
  check_against_naive({70, 75, {{0, 70, 5, 70, true}}});
  check_against_naive({3, 300, {{0, 3, 0, 300, true}}});
}

TEST_CASE("packed documents see only themselves, tokens in no piece see nothing") {
  check_against_naive({150, 150, {{0, 30, 0, 30, true}, {30, 1, 30, 1, true}, {31, 90, 31, 90, true}}});
}

TEST_CASE("a batch of equal sequences equals its sequences one by one") {
  check_against_naive({192, 192, {{0, 64, 0, 64, true}, {64, 64, 64, 64, true}, {128, 64, 128, 64, true}}});
}

TEST_CASE("pieces may overlap in their queries in any way") {
  check_against_naive({100, 300, {{20, 60, 0, 10, false}, {0, 100, 100, 100, true}, {50, 50, 250, 33, false}}});
}

TEST_CASE("one query, one key, no query, no key and no piece are legal") {
  check_against_naive({1, 200, {{0, 1, 0, 200, true}}});
  check_against_naive({5, 1, {{0, 5, 0, 1, false}}});
  check_against_naive({0, 7, {}});
  check_against_naive({7, 7, {}});
  check_against_naive({0, 0, {{0, 0, 0, 0, true}}});
  check_against_naive({4, 6, {{0, 4, 3, 0, false}, {2, 0, 0, 6, false}}});
  check_against_naive({4, 0, {{0, 4, 0, 0, false}}});
}

TEST_CASE("keys beyond one packed stripe merge across stripes") {
  const std::int64_t num_keys = ops::kKeyStripe + 100;
  check_against_naive({70, num_keys, {{0, 70, 0, num_keys, true}}, 2, 1, 8});
  check_against_naive({20, num_keys, {{0, 20, ops::kKeyStripe - 9, 25, true}}, 2, 1, 8});
}

TEST_CASE("head widths and groupings of every kind are supported") {
  for (const std::int64_t width : {1, 5, 30, 64, 128}) {
    CAPTURE(width);
    check_against_naive({33, 33, {{0, 33, 0, 33, true}}, 3, 3, width});
    check_against_naive({33, 33, {{0, 33, 0, 33, true}}, 6, 1, width});
  }
}

TEST_CASE("attention takes strided rows and heads") {
  for (const at::ScalarType dtype : kDtypes) {
    const at::Tensor qkv = values({50, 2, 4, 16}, dtype, 5);
    const at::Tensor q = values({4, 50, 16}, dtype, 6).transpose(0, 1), k = qkv.select(2, 2), v = qkv.select(2, 3);
    const at::Tensor dout = values({50, 16, 4}, dtype, 7).transpose(1, 2).contiguous();
    const std::vector<AttentionPiece> pieces{{0, 50, 0, 50, true}};
    const auto strided = ops::attention_forward(q, k, v, pieces, kScale);
    const auto dense = ops::attention_forward(q.contiguous(), k.contiguous(), v.contiguous(), pieces, kScale);
    CHECK(at::equal(strided.out, dense.out));
    const auto strided_gradient = ops::attention_backward(dout, q, k, v, strided, pieces, kScale);
    const auto dense_gradient =
        ops::attention_backward(dout, q.contiguous(), k.contiguous(), v.contiguous(), dense, pieces, kScale);
    CHECK(at::equal(strided_gradient.dq, dense_gradient.dq));
    CHECK(at::equal(strided_gradient.dk, dense_gradient.dk));
    CHECK(at::equal(strided_gradient.dv, dense_gradient.dv));
  }
}

TEST_CASE("the naive form is libtorch's attention, forward and backward") {
  const std::int64_t length = 21;
  const at::Tensor q = values({length, 4, 8}, at::kDouble, 1).requires_grad_();
  const at::Tensor k = values({length, 2, 8}, at::kDouble, 2).requires_grad_();
  const at::Tensor v = values({length, 2, 8}, at::kDouble, 3).requires_grad_();
  const at::Tensor dout = values({length, 4, 8}, at::kDouble, 4);
  const at::Tensor out =
      at::scaled_dot_product_attention(q.transpose(0, 1).unsqueeze(0), k.transpose(0, 1).unsqueeze(0),
                                       v.transpose(0, 1).unsqueeze(0), {}, 0.0, true, kScale, /*enable_gqa=*/true)
          .squeeze(0)
          .transpose(0, 1);
  const auto expected = torch::autograd::grad({out}, {q, k, v}, {dout});
  const std::vector<AttentionPiece> pieces{{0, length, 0, length, true}};
  const auto forward = ops::attention_forward_naive(q.detach(), k.detach(), v.detach(), pieces, kScale);
  CHECK(distance(forward.out, out.detach()) <= 1e-12);
  const auto gradient =
      ops::attention_backward_naive(dout, q.detach(), k.detach(), v.detach(), forward, pieces, kScale);
  CHECK(distance(gradient.dq, expected[0]) <= 1e-12);
  CHECK(distance(gradient.dk, expected[1]) <= 1e-12);
  CHECK(distance(gradient.dv, expected[2]) <= 1e-12);
}

TEST_CASE("the naive backward is the difference quotient of the forward over several pieces") {
  const at::Tensor q = values({6, 2, 4}, at::kDouble, 1), k = values({9, 1, 4}, at::kDouble, 2);
  const at::Tensor v = values({9, 1, 4}, at::kDouble, 3), dout = values({6, 2, 4}, at::kDouble, 4);
  const std::vector<AttentionPiece> pieces{{0, 4, 0, 3, false}, {0, 4, 3, 4, true}, {4, 1, 1, 7, true}};
  const auto loss = [&](const at::Tensor& q2, const at::Tensor& k2, const at::Tensor& v2) {
    return (ops::attention_forward_naive(q2, k2, v2, pieces, kScale).out * dout).sum().item<double>();
  };
  const auto forward = ops::attention_forward_naive(q, k, v, pieces, kScale);
  const auto gradient = ops::attention_backward_naive(dout, q, k, v, forward, pieces, kScale);
  const auto by_q = difference_gradient(q, [&](const at::Tensor& x) { return loss(x, k, v); });
  const auto by_k = difference_gradient(k, [&](const at::Tensor& x) { return loss(q, x, v); });
  const auto by_v = difference_gradient(v, [&](const at::Tensor& x) { return loss(q, k, x); });
  CHECK(distance(gradient.dq, by_q) <= kDifferenceTolerance);
  CHECK(distance(gradient.dk, by_k) <= kDifferenceTolerance);
  CHECK(distance(gradient.dv, by_v) <= kDifferenceTolerance);
}

TEST_CASE("attention shows NaN in a score as NaN in its result") {
  const at::Tensor q = at::ones({20, 1, 8}), k = at::ones({20, 1, 8});
  k[3][0][0] = NAN;
  const std::vector<AttentionPiece> pieces{{0, 20, 0, 20, true}};
  const auto result = ops::attention_forward(q, k, at::ones({20, 1, 8}), pieces, kScale);
  CHECK(result.lse[0].narrow(0, 3, 17).isnan().all().item<bool>());
  CHECK_FALSE(result.lse[0].narrow(0, 0, 3).isnan().any().item<bool>());
}

TEST_CASE("a piece beyond the tokens or with fewer keys than a causal piece needs is refused") {
  const at::Tensor q = at::ones({4, 1, 8}), k = at::ones({3, 1, 8});
  for (const AttentionPiece& piece : {AttentionPiece{0, 5, 0, 3, false}, AttentionPiece{0, 4, 1, 3, false},
                                      AttentionPiece{0, 4, 0, 3, true}, AttentionPiece{-1, 2, 0, 3, false}}) {
    CHECK_THROWS_AS(ops::attention_forward(q, k, k, std::span(&piece, 1), kScale), InternalError);
  }
}
