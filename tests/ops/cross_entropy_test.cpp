#include "octavo/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "octavo/base/error.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

namespace {

at::Tensor labels_of(std::int64_t num_tokens, std::int64_t vocabulary) {
  at::Tensor labels = at::arange(num_tokens, at::kLong) * 37 % vocabulary;
  if (num_tokens > 2) labels[2] = -100;
  return labels;
}

ops::VocabularyMerge merged(const at::Tensor& logits, const at::Tensor& labels, std::int64_t rows_per_block) {
  ops::VocabularyMerge state = ops::vocabulary_merge_begin(logits.size(0), logits.scalar_type(), at::kCPU);
  for (std::int64_t first = 0; first < logits.size(1); first += rows_per_block) {
    const std::int64_t rows = std::min(rows_per_block, logits.size(1) - first);
    ops::vocabulary_merge_block(state, logits.narrow(1, first, rows), labels, first);
  }
  return state;
}

}  // namespace

TEST_CASE("the online merge over any split of the vocabulary is log_softmax") {
  const std::int64_t num_tokens = 13, vocabulary = 101;
  const at::Tensor labels = labels_of(num_tokens, vocabulary);
  for (const at::ScalarType dtype : kDtypes) {
    const at::Tensor logits = values({num_tokens, vocabulary}, dtype, 1) * 20;
    const at::Tensor wide = logits.to(at::kDouble);
    const at::Tensor expected_lse = at::logsumexp(wide, -1);
    const at::Tensor expected_loss = -at::log_softmax(wide, -1)
                                          .gather(1, labels.clamp_min(0).unsqueeze(1))
                                          .squeeze(1)
                                          .masked_fill(labels < 0, 0)
                                          .sum();
    const double tolerance = dtype == at::kDouble ? kFloat64Tolerance : kFloat32Tolerance;
    for (const std::int64_t rows_per_block : {1, 7, 16, 50, 101}) {
      CAPTURE(name_of(dtype));
      CAPTURE(rows_per_block);
      const ops::VocabularyMerge state = merged(logits, labels, rows_per_block);
      CHECK(name_of(state.lse.scalar_type()) == name_of((dtype == at::kDouble ? at::kDouble : at::kFloat)));
      CHECK(distance(state.lse, expected_lse) <= tolerance);
      const at::Tensor loss = ops::loss_sum(state, labels);
      CHECK(name_of(loss.scalar_type()) == name_of(at::kDouble));
      CHECK(distance(loss, expected_loss) <= tolerance);
    }
  }
}

TEST_CASE("the gradient of the logits is autograd's, block by block, and zero for ignored tokens") {
  const std::int64_t num_tokens = 6, vocabulary = 40;
  const at::Tensor labels = labels_of(num_tokens, vocabulary);
  const double scale = 0.25;
  for (const at::ScalarType dtype : kDtypes) {
    const at::Tensor logits = values({num_tokens, vocabulary}, dtype, 2) * 8;
    const at::Tensor leaf = logits.to(at::kDouble).requires_grad_();
    const at::Tensor loss = at::nll_loss(at::log_softmax(leaf, -1), labels, {}, at::Reduction::Sum, -100) * scale;
    const at::Tensor expected = torch::autograd::grad({loss}, {leaf})[0];
    at::Tensor gradient = logits.clone();
    const ops::VocabularyMerge state = merged(logits, labels, 16);
    for (const auto& [first, rows] : {std::pair{0, 24}, std::pair{24, 16}}) {
      at::Tensor block = gradient.narrow(1, first, rows);
      ops::logits_to_gradient_(block, state.lse, labels, first, scale);
    }
    CHECK(distance(gradient, expected) <= tolerance_of(dtype));
    CHECK(gradient[2].abs().max().item<double>() == 0);
  }
}

TEST_CASE("the gradient of a label that is all but certain keeps its digits") {
  at::Tensor logits = at::zeros({1, 4}, at::kFloat);
  logits[0][1] = 20.0f;
  const at::Tensor labels = at::ones({1}, at::kLong);
  const ops::VocabularyMerge state = merged(logits, labels, 4);
  ops::logits_to_gradient_(logits, state.lse, labels, 0, 1.0);
  CHECK(logits[0][0].item<double>() == doctest::Approx(std::exp(-20.0)).epsilon(1e-3));
}

TEST_CASE("minus infinity among the logits is no contribution, NaN stays visible") {
  at::Tensor logits = at::full({1, 20}, -INFINITY, at::kFloat);
  logits[0][17] = 3.0f;
  const at::Tensor labels = at::full({1}, 17, at::kLong);
  CHECK(merged(logits, labels, 8).lse.item<double>() == doctest::Approx(3.0));
  logits[0][3] = NAN;
  CHECK(std::isnan(merged(logits, labels, 8).lse.item<double>()));
}

TEST_CASE("states without a row add nothing to a merge, and merge to one without a row") {
  const at::NoGradGuard no_grad;
  const ops::VocabularyMerge nothing = ops::vocabulary_merge_begin(2, at::kDouble, at::kCPU);
  ops::VocabularyMerge state = ops::vocabulary_merge_begin(2, at::kDouble, at::kCPU);
  const at::Tensor states =
      at::stack({at::stack({nothing.lse, nothing.picked}), at::stack({nothing.lse, nothing.picked})});
  ops::vocabulary_merge_states(state, states);
  CHECK(at::equal(state.lse, nothing.lse));
  CHECK(at::equal(state.picked, nothing.picked));
  states.select(0, 1).copy_(at::full({2, 2}, 3.0, at::kDouble));
  ops::vocabulary_merge_states(state, states);
  CHECK((state.lse == 3.0).all().item<bool>());
  CHECK((state.picked == 3.0).all().item<bool>());
}

TEST_CASE("a vocabulary block of no tokens is legal, labels of another length an error") {
  const at::Tensor none = at::empty({0}, at::kLong);
  const ops::VocabularyMerge state = merged(at::empty({0, 8}), none, 4);
  CHECK(ops::loss_sum(state, none).item<double>() == 0);
  CHECK_THROWS_AS(merged(at::zeros({3, 8}), none, 4), InternalError);
}
