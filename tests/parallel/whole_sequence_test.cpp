#include "octavo/parallel/fold/whole_sequence.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include "octavo/base/error.h"

using namespace octavo;

namespace {

constexpr std::int64_t kNone = -7;

at::Tensor cut(const TokenCut& token_cut, const std::vector<std::int64_t>& lengths, PositionOrder order) {
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens += length;
  const auto sequence = make_whole_sequence(token_cut, lengths, order, at::TensorOptions().dtype(at::kDouble));
  return sequence->cut(at::arange(tokens, at::kLong), kNone);
}

bool equal(const at::Tensor& a, const std::vector<std::int64_t>& b) {
  return at::equal(a, at::tensor(b, at::kLong));
}

}  // namespace

TEST_CASE("sequences come one after another, each filled up behind its last token") {
  const at::NoGradGuard no_grad;
  CHECK(equal(cut({TokenOrder::Zigzag, 2}, {5, 3}, PositionOrder::Sequences),
              {0, 1, 2, 3, 4, kNone, kNone, kNone, 5, 6, 7, kNone}));
  CHECK(equal(cut({TokenOrder::Contiguous, 3}, {4}, PositionOrder::Sequences), {0, 1, 2, 3, kNone, kNone}));
}

TEST_CASE("rank after rank, positions come as the ranks hold them") {
  const at::NoGradGuard no_grad;
  // Rank 0 holds chunks 0 and 3 of each sequence, rank 1 chunks 1 and 2; chunks of 2 positions, then of 1.
  CHECK(equal(cut({TokenOrder::Zigzag, 2}, {5, 3}, PositionOrder::Ranks),
              {0, 1, kNone, kNone, 5, kNone, 2, 3, 4, kNone, 6, 7}));
}

TEST_CASE("what was cut is whole again, in both orders, without the positions of no token") {
  const at::NoGradGuard no_grad;
  for (const TokenOrder order : {TokenOrder::Zigzag, TokenOrder::Contiguous}) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{1}, {7, 2}, {20}, {}}) {
        for (const PositionOrder positions : {PositionOrder::Sequences, PositionOrder::Ranks}) {
          const auto sequence =
              make_whole_sequence({order, ranks}, lengths, positions, at::TensorOptions().dtype(at::kDouble));
          std::int64_t tokens = 0;
          for (const std::int64_t length : lengths) tokens += length;
          const at::Tensor held = sequence->cut(at::arange(tokens, at::kLong), kNone);
          CHECK(at::equal(sequence->whole(held.unsqueeze(1)).squeeze(1), at::arange(tokens, at::kLong)));
        }
      }
    }
  }
}

TEST_CASE("every sequence attends causally to itself, and its positions start at 0") {
  const at::NoGradGuard no_grad;
  const auto sequence = make_whole_sequence({TokenOrder::Zigzag, 2}, {5, 3}, PositionOrder::Sequences,
                                            at::TensorOptions().dtype(at::kDouble));
  REQUIRE(sequence->pieces().size() == 2);
  const ops::AttentionPiece second = sequence->pieces()[1];
  CHECK(second.q_begin == 8);
  CHECK(second.q_len == 4);
  CHECK(second.k_begin == 8);
  CHECK(second.k_len == 4);
  CHECK(second.causal);
  const at::Tensor cosines = sequence->rope(RopeSpec{}, 4).cos;
  CHECK(cosines.size(0) == 12);
  CHECK(at::equal(cosines.narrow(0, 0, 4), cosines.narrow(0, 8, 4)));
  const at::Tensor k = at::ones({12, 2, 4}, at::kDouble);
  CHECK(sequence->exchange(k, k)->gathered().first.is_same(k));
}

TEST_CASE("attention to positions that are not in the order of their sequences is a bug that is caught") {
  const at::NoGradGuard no_grad;
  const auto sequence =
      make_whole_sequence({TokenOrder::Zigzag, 2}, {8}, PositionOrder::Ranks, at::TensorOptions().dtype(at::kDouble));
  CHECK_THROWS_AS(sequence->pieces(), InternalError);
  // One sequence in contiguous chunks has one order.
  const auto contiguous = make_whole_sequence({TokenOrder::Contiguous, 2}, {8}, PositionOrder::Ranks,
                                              at::TensorOptions().dtype(at::kDouble));
  CHECK(contiguous->pieces().size() == 1);
}
