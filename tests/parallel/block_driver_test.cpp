#include "octavo/parallel/block_driver.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <cmath>

#include "octavo/models/catalog.h"
#include "octavo/parallel/local_exchange.h"
#include "octavo/parallel/local_flow.h"
#include "octavo/parallel/local_sequence.h"

using namespace octavo;

namespace {

ModelSpec one_layer() {
  ModelSpec model;
  model.model_type = "qwen3";
  model.hidden_size = 16;
  model.vocab_size = 8;
  model.norm_eps = 1e-5;
  model.layers.push_back({AttentionSpec{8, 4, 4, true, {}}, GatedMlpSpec{24}});
  return model;
}

/// One layer whose weights are all different.
struct Layer {
  Layer() : table(one_layer()), store(table, place(table, {}, 0), ElementType::Float64, at::kCPU, true) {
    std::int64_t counter = 0;
    store.load([&](const Parameter&, std::int64_t, std::span<double> rows) {
      for (double& value : rows) value = std::sin(static_cast<double>(++counter)) * 0.5;
    });
    blocks = make_blocks(one_layer(), table);
  }
  ParamTable table;
  ParamStore store;
  std::vector<std::unique_ptr<Block>> blocks;
};

struct Outcome {
  at::Tensor y, dx, gradients;
};

/// Runs block `block` forward and backward in `steps` steps under `stash` on fixed inputs.
Outcome run_block(int block, int steps, const std::string& stash, const std::vector<std::int64_t>& lengths) {
  const at::NoGradGuard no_grad;
  Layer layer;
  const StashPolicy policy = parse_stash_policy(stash);
  const auto flow = make_local_flow(layer.store, block, steps);
  BlockDriver driver(*layer.blocks[block - 1], policy);
  std::int64_t tokens = 0;
  for (const std::int64_t length : lengths) tokens += length;
  const auto sequence = make_local_sequence(lengths, layer.store.weights().options());
  const auto exchange = make_local_exchange();
  const MicroBatch batch{0, *sequence, *exchange};
  const at::Tensor x = at::sin(at::arange(tokens * 16, at::kDouble) * 0.7).view({tokens, 16});
  const at::Tensor dy = at::cos(at::arange(tokens * 16, at::kDouble) * 0.3).view({tokens, 16});
  std::unique_ptr<Saved> saved;
  Outcome outcome;
  const auto forward = flow->begin(Direction::Forward, 0), backward = flow->begin(Direction::Backward, 0);
  outcome.y = driver.forward(x, {batch, *forward}, &saved);
  CHECK(at::allclose(driver.forward(x, {batch, *forward}, nullptr), outcome.y, 1e-13, 1e-13));
  outcome.dx = driver.backward(std::move(saved), dy.clone(), {batch, *backward});
  outcome.gradients = layer.store.gradients();
  return outcome;
}

bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-11, 1e-11);
}

}  // namespace

TEST_CASE("the steps of a flow and the stash change nothing but memory") {
  for (const int block : {1, 2}) {
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{7, 7}, {5, 1, 9}, {1}}) {
      const Outcome whole = run_block(block, 1, "keep", lengths);
      CHECK(whole.gradients.abs().max().item<double>() > 0);
      for (const int steps : {1, 2, 3, 4}) {
        for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up", "attention,qkv,gate_up"}) {
          CAPTURE(block);
          CAPTURE(steps);
          CAPTURE(stash);
          const Outcome outcome = run_block(block, steps, stash, lengths);
          CHECK(close(outcome.y, whole.y));
          CHECK(close(outcome.dx, whole.dx));
          CHECK(close(outcome.gradients, whole.gradients));
        }
      }
    }
  }
}

TEST_CASE("the gradient of the input is that of finite differences") {
  const at::NoGradGuard no_grad;
  Layer layer;
  const StashPolicy keep;
  const auto sequence = make_local_sequence({5}, layer.store.weights().options());
  const auto exchange = make_local_exchange();
  const MicroBatch batch{0, *sequence, *exchange};
  const at::Tensor x = at::sin(at::arange(80, at::kDouble) * 0.7).view({5, 16});
  const at::Tensor dy = at::cos(at::arange(80, at::kDouble) * 0.3).view({5, 16});
  for (const int block : {1, 2}) {
    const auto flow = make_local_flow(layer.store, block, 2);
    BlockDriver driver(*layer.blocks[block - 1], keep);
    const auto trip = flow->begin(Direction::Backward, 0);
    const Pass pass{batch, *trip};
    std::unique_ptr<Saved> saved;
    driver.forward(x, pass, &saved);
    const at::Tensor dx = driver.backward(std::move(saved), dy.clone(), pass);
    for (const int element : {0, 17, 42, 79}) {
      constexpr double kStep = 1e-6;
      at::Tensor up = x.clone(), down = x.clone();
      up.view({-1}).select(0, element).add_(kStep);
      down.view({-1}).select(0, element).sub_(kStep);
      const at::Tensor difference =
          (driver.forward(up, pass, nullptr) - driver.forward(down, pass, nullptr)) / (2 * kStep);
      CHECK((difference * dy).sum().item<double>() ==
            doctest::Approx(dx.view({-1}).select(0, element).item<double>()).epsilon(1e-6));
    }
  }
}
