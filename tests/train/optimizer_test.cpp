#include "octavo/train/optimizer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "octavo/spec/model_spec.h"

using namespace octavo;

namespace {

ModelSpec tiny() {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 8;
  model.vocab_size = 9;
  model.layers.push_back({AttentionSpec{2, 1, 4, false, {}}, GatedMlpSpec{5}});
  return model;
}

struct Fixture {
  explicit Fixture(ElementType compute, const char* layout = "", int rank = 0)
      : table(tiny()), store(table, place(table, parse_layout(layout), rank), compute, at::kCPU, true) {
    store.load(
        [](const Parameter&, std::int64_t, std::span<double> rows) { std::fill(rows.begin(), rows.end(), 0.5); });
    store.gradients().fill_(0.25);
  }
  ParamTable table;
  ParamStore store;
};

}  // namespace

TEST_CASE("matrices decay, vectors do not") {
  Fixture f(ElementType::Float64);
  Optimizer optimizer(f.store, {.weight_decay = 0.5});
  optimizer.update(0, 0.1, 1.0);
  for (int slab = 0; slab < static_cast<int>(f.table.slabs().size()); ++slab) {
    // The first Adam step moves by lr; decay takes lr * 0.5 of the weight before it.
    const double expected = (f.table.slabs()[slab].decays ? 0.5 * (1 - 0.05) : 0.5) - 0.1;
    CHECK(f.store.weight(slab).max().item<double>() == doctest::Approx(expected).epsilon(1e-6));
    CHECK(f.store.weight(slab).min().item<double>() == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("padding stays zero") {
  Fixture f(ElementType::Float32, "data=4");
  Optimizer optimizer(f.store, {});
  optimizer.update(0, 0.1, 1.0);
  double padding = 0, stored = 0;
  for (const StoredPart& part : f.store.placement().parts) stored += static_cast<double>(part.elements.size());
  padding = f.store.weights().numel() - stored;
  CHECK(padding > 0);
  CHECK((f.store.weights() == 0).sum().item<double>() == padding);
}

TEST_CASE("bfloat16 weights are the rounded float32 masters, which keep what rounding would lose") {
  Fixture f(ElementType::BFloat16);
  Optimizer optimizer(f.store, {.weight_decay = 0});
  for (int step = 0; step < 10; ++step) optimizer.update(step, 1e-4, 1.0);
  const double master = f.store.masters(0).select(0, 0).item<double>();
  CHECK(master == doctest::Approx(0.5 - 10e-4).epsilon(1e-5));
  CHECK(f.store.weights().select(0, 0).item<double>() == static_cast<double>(at::BFloat16(static_cast<float>(master))));
}

TEST_CASE("the norm's parts of all ranks sum to the whole") {
  double sum = 0;
  for (int rank = 0; rank < 3; ++rank) {
    Fixture f(ElementType::Float64, "data=3:zero1", rank);
    f.store.gradients().zero_();
    for (int slab = 0; slab < static_cast<int>(f.table.slabs().size()); ++slab) f.store.gradient(slab).fill_(2.0);
    sum += Optimizer(f.store, {}).primary_sum_of_squares();
  }
  double elements = 0;
  const ParamTable table(tiny());
  for (const Slab& slab : table.slabs()) elements += static_cast<double>(slab.elements());
  CHECK(sum == 4 * elements);
}
