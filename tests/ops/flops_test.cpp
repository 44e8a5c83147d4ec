// FLOPs executed, counted from shapes, against what the formulas of a block say.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "octavo/memory/account.h"
#include "octavo/ops/attention.h"
#include "octavo/ops/functions.h"
#include "octavo/ops/matmul.h"

using namespace octavo;

namespace {

at::TensorOptions on(at::Device device) {
  return at::TensorOptions().dtype(at::kFloat).device(device);
}

/// FLOPs of what `body` does, the same on CPU and meta.
ExecutedFlops flops_of(const std::function<void(at::Device)>& body) {
  ExecutedFlops counted[2];
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    const AccountHandle account = MemoryAccount::create();
    const ChargeTo charge(account.get());
    body(device);
    counted[device.is_meta()] = account->flops();
  }
  CHECK(counted[0].matmul == counted[1].matmul);
  CHECK(counted[0].attention == counted[1].attention);
  CHECK(counted[0].attention_masked == counted[1].attention_masked);
  return counted[0];
}

/// Panels of zeros; gradients are the products of their factors.
class PlainTrip final : public WeightTrip {
 public:
  explicit PlainTrip(std::vector<at::Tensor> panels) : panels_(std::move(panels)) {
    for (const at::Tensor& panel : panels_) gradients_.push_back(at::zeros_like(panel));
  }
  int num_steps() const override { return 1; }
  void fetch_more(Half) override {}
  void then(WeightTrip&) override {}
  void half_done(int, Half) override {}
  bool is_returning() const override { return false; }
  void finish() override {}
  UnitRange units(int) const override { return {0, panels_.front().size(0)}; }
  std::int64_t most_units() const override { return 1; }
  bool counts() const override { return true; }
  at::Tensor panel(int, int panel) override { return panels_[panel]; }
  at::Tensor common(int) override { return {}; }
  void add_product(int, int panel, const at::Tensor& a, const at::Tensor& b) override {
    ops::addmm_(gradients_[panel], a.t(), b);
  }
  at::Tensor look_up(int, int, const at::Tensor&) override { return {}; }
  void add_rows(int, int, const at::Tensor&, const at::Tensor&) override {}
  void add_common(int, const at::Tensor&) override {}

 private:
  std::vector<at::Tensor> panels_, gradients_;
};

}  // namespace

TEST_CASE("a product of [m, k] by [k, n] counts 2 m k n, in each of its forms") {
  const ExecutedFlops flops = flops_of([](at::Device device) {
    const at::Tensor a = at::zeros({3, 5}, on(device)), b = at::zeros({5, 7}, on(device));
    at::Tensor out = ops::mm(a, b);
    ops::mm_out(out, a, b);
    ops::addmm_(out, a, b);
    (void)ops::mm(at::zeros({0, 5}, on(device)), b);
  });
  CHECK(flops.matmul == 3 * 2 * 3 * 5 * 7);
  CHECK(flops.attention == 0);
  CHECK(flops.total() == flops.matmul);
}

TEST_CASE("a gated MLP counts three products forward, six backward") {
  constexpr std::int64_t kTokens = 6, kHidden = 8, kFeatures = 12;
  const ExecutedFlops both = flops_of([&](at::Device device) {
    PlainTrip trip({at::zeros({kFeatures, kHidden}, on(device)), at::zeros({kFeatures, kHidden}, on(device)),
                    at::zeros({kFeatures, kHidden}, on(device))});
    const auto slot = std::make_shared<WeightSlot>(WeightSlot{&trip});
    const at::AutoGradMode grad_mode(true);
    const at::Tensor x = at::zeros({kTokens, kHidden}, on(device)).requires_grad_(true);
    const auto [gate, up] = ops::linear_pair(x, {slot, 0, 0}, {slot, 0, 1});
    const at::Tensor y = ops::linear_out(ops::swiglu(gate, up), {slot, 0, 2}, /*compute=*/true);
    y.backward(at::zeros_like(y));
  });
  CHECK(both.matmul == 9 * 2 * kTokens * kHidden * kFeatures);
  CHECK(both.attention == 0);
}

TEST_CASE("attention counts visible pairs, two products forward and five backward, and apart what is masked") {
  constexpr std::int64_t kTokens = 100, kHeads = 4, kKvHeads = 2, kWidth = 8;
  const auto run = [&](const std::vector<ops::AttentionPiece>& pieces, bool backward) {
    return flops_of([&](at::Device device) {
      const at::Tensor q = at::zeros({kTokens, kHeads, kWidth}, on(device));
      const at::Tensor k = at::zeros({kTokens, kKvHeads, kWidth}, on(device)), v = at::zeros_like(k);
      const ops::AttentionResult result = ops::attention_forward(q, k, v, pieces, 1.0);
      if (backward) (void)ops::attention_backward(at::zeros_like(q), q, k, v, result, pieces, 1.0);
    });
  };
  const std::vector<ops::AttentionPiece> causal = {{0, kTokens, 0, kTokens, true}};
  constexpr double kVisible = kTokens * (kTokens + 1) / 2;
  // Blocks of 64 and 36 queries; rows and keys of each padded to multiples of 16.
  constexpr double kComputed = 64 * 64 + 48 * 112;
  constexpr double kPerPair = 2 * kHeads * kWidth;
  CHECK(run(causal, false).attention == 2 * kPerPair * kVisible);
  CHECK(run(causal, false).attention_masked == 2 * kPerPair * (kComputed - kVisible));
  CHECK(run(causal, true).attention == 7 * kPerPair * kVisible);
  CHECK(run(causal, true).attention_masked == 7 * kPerPair * (kComputed - kVisible));
  CHECK(run(causal, true).matmul == 0);

  // A zigzag chunk: the first 20 queries see a prefix whole, and themselves causally.
  const std::vector<ops::AttentionPiece> chunk = {{0, 20, 0, 40, false}, {0, 20, 40, 20, true}};
  CHECK(run(chunk, false).attention == 2 * kPerPair * (20 * 40 + 20 * 21 / 2));
  CHECK(run({}, true).total() == 0);
}

TEST_CASE("attention over more keys than are packed at once counts each pair once") {
  constexpr std::int64_t kKeys = 5000, kQueries = 10;
  const ExecutedFlops flops = flops_of([](at::Device device) {
    const at::Tensor q = at::zeros({kQueries, 1, 4}, on(device)), k = at::zeros({kKeys, 1, 4}, on(device));
    const std::vector<ops::AttentionPiece> pieces = {{0, kQueries, 0, kKeys, false}};
    (void)ops::attention_forward(q, k, k, pieces, 1.0);
  });
  CHECK(flops.attention == 2.0 * 2 * 4 * kQueries * kKeys);
  CHECK(flops.attention_masked == 2.0 * 2 * 4 * (16 * (4096 + 912) - kQueries * kKeys));
}

TEST_CASE("products are counted for the rank that runs them, and for nobody outside an account") {
  const AccountHandle account = MemoryAccount::create();
  const at::Tensor a = at::ones({2, 2});
  (void)ops::mm(a, a);
  CHECK(account->flops().total() == 0);
  {
    const ChargeTo charge(account.get());
    (void)ops::mm(a, a);
  }
  CHECK(account->flops().matmul == 16);
  account->reset_flops();
  CHECK(account->flops().total() == 0);
}
