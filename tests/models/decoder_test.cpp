#include "octavo/models/decoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <cmath>

#include "octavo/comm/record/record_world.h"

using namespace octavo;

namespace {

ModelSpec spec(bool tied) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 8;
  model.vocab_size = 17;
  model.tied_embeddings = tied;
  for (int layer = 0; layer < 2; ++layer) model.layers.push_back({AttentionSpec{4, 2, 4, false, {}}, GatedMlpSpec{6}});
  return model;
}

struct Model {
  explicit Model(bool tied)
      : model(spec(tied)), table(model), store(table, place(table, {}, 0), ElementType::Float64, at::kCPU, true) {
    std::int64_t counter = 0;
    store.load([&](const Parameter&, std::int64_t, std::span<double> rows) {
      for (double& value : rows) value = 0.5 * std::sin(static_cast<double>(++counter));
    });
  }
  ModelSpec model;
  ParamTable table;
  ParamStore store;
  std::unique_ptr<World> world = make_record_world(0, 1);
  RankGroups groups{*world, {}, store.placement()};
};

TokenBatch batch_of(const std::vector<std::int64_t>& lengths) {
  TokenBatch batch;
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens += length;
  batch.ids_N = at::arange(tokens, at::kLong).mul(5).remainder(17);
  batch.labels_N = at::arange(tokens, at::kLong).mul(3).remainder(17);
  batch.lengths = lengths;
  return batch;
}

}  // namespace

TEST_CASE("blocks are reported once each, from the head to the embedding") {
  const at::NoGradGuard no_grad;
  Model model(true);
  Decoder decoder(model.model, model.store, model.groups, {});
  std::vector<int> done;
  decoder.forward_backward(batch_of({4, 3}), 0, 1.0, [&](int block) { done.push_back(block); });
  CHECK(done == std::vector<int>{5, 4, 3, 2, 1, 0});
}

TEST_CASE("a batch without tokens passes through, forward and backward") {
  const at::NoGradGuard no_grad;
  for (const char* stash : {"keep", "recompute", "attention"}) {
    Model model(false);
    Decoder decoder(model.model, model.store, model.groups, {parse_stash_policy(stash)});
    int done = 0;
    const at::Tensor loss = decoder.forward_backward(batch_of({}), 0, 1.0, [&](int) { ++done; });
    CHECK(loss.item<double>() == 0);
    CHECK(done == decoder.num_blocks());
    CHECK((model.store.gradients() == 0).all().item<bool>());
  }
}

TEST_CASE("sequences of one batch do not see each other") {
  const at::NoGradGuard no_grad;
  Model model(false);
  Decoder decoder(model.model, model.store, model.groups, {});
  TokenBatch both = batch_of({4, 3}), changed = batch_of({4, 3});
  changed.ids_N.narrow(0, 0, 4).fill_(1);
  const at::Tensor a = decoder.hidden(both), b = decoder.hidden(changed);
  CHECK(at::equal(a.narrow(0, 4, 3), b.narrow(0, 4, 3)));
  CHECK_FALSE(at::equal(a.narrow(0, 0, 4), b.narrow(0, 0, 4)));
}

TEST_CASE("a token does not see what follows it") {
  const at::NoGradGuard no_grad;
  Model model(true);
  Decoder decoder(model.model, model.store, model.groups, {});
  TokenBatch batch = batch_of({9}), changed = batch_of({9});
  changed.ids_N.narrow(0, 6, 3).fill_(2);
  CHECK(at::allclose(decoder.hidden(batch).narrow(0, 0, 6), decoder.hidden(changed).narrow(0, 0, 6), 0, 1e-14));
}

TEST_CASE("the gradient of a tied matrix is that of both its uses") {
  const at::NoGradGuard no_grad;
  Model model(true);
  Decoder decoder(model.model, model.store, model.groups, {});
  const TokenBatch batch = batch_of({5});
  decoder.forward_backward(batch, 0, 1.0, [](int) {});
  at::Tensor weight = model.store.weight(model.table.panel_slab(0, 0)).view({-1});
  const at::Tensor gradient = model.store.gradient(model.table.panel_slab(0, 0)).view({-1});
  for (const int element : {0, 40, 43, 135}) {
    constexpr double kStep = 1e-6;
    weight.select(0, element).add_(kStep);
    const double up = decoder.loss(batch).item<double>();
    weight.select(0, element).sub_(2 * kStep);
    const double down = decoder.loss(batch).item<double>();
    weight.select(0, element).add_(kStep);
    CHECK((up - down) / (2 * kStep) == doctest::Approx(gradient.select(0, element).item<double>()).epsilon(1e-6));
  }
}
