#include "octavo/blocks/vocabulary.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "octavo/base/error.h"
#include "octavo/parallel/local_exchange.h"
#include "octavo/parallel/local_flow.h"

using namespace octavo;

namespace {

constexpr std::int64_t kVocabulary = 23, kHidden = 12;

struct Model {
  Model() : table(spec()), store(table, place(table, {}, 0), ElementType::Float64, at::kCPU, true) {
    std::int64_t counter = 0;
    store.load([&](const Parameter&, std::int64_t, std::span<double> rows) {
      for (double& value : rows) value = std::sin(static_cast<double>(++counter));
    });
  }
  static ModelSpec spec() {
    ModelSpec model;
    model.model_type = "llama";
    model.hidden_size = kHidden;
    model.vocab_size = kVocabulary;
    model.layers.push_back({AttentionSpec{1, 1, 2, false, {}}, GatedMlpSpec{2}});
    return model;
  }
  std::unique_ptr<Flow> flow(int block) { return make_local_flow(store, block, 1); }
  std::unique_ptr<WeightTrip> trip(int block) { return flow(block)->begin(Direction::Backward, 0); }

  ParamTable table;
  ParamStore store;
};

/// A rank that holds everything.
std::unique_ptr<UnitExchange> alone() {
  return make_local_exchange();
}

Head::Result loss_and_gradient(const Head& head, Model& model, const at::Tensor& x, const at::Tensor& labels,
                               double scale) {
  const auto trip = model.trip(static_cast<int>(model.table.blocks().size()) - 1);
  return head.loss_and_gradient(x, labels, scale, std::array{trip.get()}, *alone());
}

at::Tensor inputs(std::int64_t tokens) {
  return at::cos(at::arange(tokens * kHidden, at::kDouble) * 0.37).view({tokens, kHidden});
}

at::Tensor labels_for(std::int64_t tokens) {
  at::Tensor labels = at::arange(tokens, at::kLong).remainder(kVocabulary);
  if (tokens > 2) labels.select(0, 2).fill_(-100);
  return labels;
}

}  // namespace

TEST_CASE("the head's loss is the cross-entropy of its logits, over any chunks of tokens") {
  const at::NoGradGuard no_grad;
  for (const std::int64_t tokens : {1, 5, 8, 9}) {
    Model whole_model;
    const int block = static_cast<int>(whole_model.table.blocks().size()) - 1;
    const at::Tensor x = inputs(tokens), labels = labels_for(tokens);
    const Head head(kVocabulary, 1e-5);
    const auto trip = whole_model.trip(block);
    const Head::Result whole = loss_and_gradient(head, whole_model, x, labels, 0.25);
    const at::Tensor log_p = at::log_softmax(head.logits(head.final_norm(x, *trip), *trip, *alone()), 1);
    double expected = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t label = labels[t].item<std::int64_t>();
      if (label >= 0) expected -= log_p[t][label].item<double>();
    }
    CHECK(whole.loss_sum.item<double>() == doctest::Approx(expected).epsilon(1e-12));
    CHECK(head.loss(x, labels, *trip, *alone()).loss_sum.item<double>() == doctest::Approx(expected).epsilon(1e-12));
    for (const std::int64_t chunk : {1, 2, 4}) {
      CAPTURE(tokens);
      CAPTURE(chunk);
      Model model;
      const Head small(kVocabulary, 1e-5, {.logit_bytes = 1, .fewest_tokens = chunk});
      const Head::Result parts = loss_and_gradient(small, model, x, labels, 0.25);
      CHECK(parts.loss_sum.item<double>() == doctest::Approx(expected).epsilon(1e-12));
      CHECK(at::allclose(parts.dx_TH, whole.dx_TH, 1e-12, 1e-12));
      CHECK(at::allclose(model.store.gradients(), whole_model.store.gradients(), 1e-12, 1e-12));
    }
  }
}

TEST_CASE("a label beyond the vocabulary is refused, not lost") {
  const at::NoGradGuard no_grad;
  Model model;
  const auto trip = model.trip(static_cast<int>(model.table.blocks().size()) - 1);
  const at::Tensor labels = at::full({3}, kVocabulary, at::kLong);
  CHECK_THROWS_WITH_AS(Head(kVocabulary, 1e-5).loss(inputs(3), labels, *trip, *alone()), doctest::Contains("label 23"),
                       UsageError);
}

TEST_CASE("the embedding's gradient adds up over the tokens that share a row") {
  const at::NoGradGuard no_grad;
  Model model;
  const auto trip = model.trip(0);
  const at::Tensor ids = at::arange(6, at::kLong).remainder(2);
  const at::Tensor x = embed(ids, *trip, *alone());
  CHECK(at::equal(x.select(0, 0), x.select(0, 4)));
  CHECK_FALSE(at::equal(x.select(0, 0), x.select(0, 1)));
  embed_backward(ids, at::ones({6, kHidden}, at::kDouble), *trip, *alone());
  const at::Tensor gradient = model.store.gradient(model.table.panel_slab(0, 0));
  CHECK((gradient.narrow(0, 0, 2) == 3).all().item<bool>());
  CHECK((gradient.narrow(0, 2, kVocabulary - 2) == 0).all().item<bool>());
}

TEST_CASE("no tokens have no loss and no gradient") {
  const at::NoGradGuard no_grad;
  Model model;
  const Head::Result result = loss_and_gradient(Head(kVocabulary, 1e-5), model, inputs(0), labels_for(0), 1.0);
  CHECK(result.loss_sum.item<double>() == 0);
  CHECK(result.dx_TH.size(0) == 0);
  CHECK((model.store.gradients() == 0).all().item<bool>());
}
