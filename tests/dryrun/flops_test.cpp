// What tensor-parallel ranks execute, counted at the ops, against one rank and the printed price of a misfit.
#include <doctest/doctest.h>

#include "octavo/base/text.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/layout/misfit.h"

using namespace octavo;

namespace {

constexpr std::int64_t kLength = 24, kBatch = 2, kLayers = 2;

ModelSpec model_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t features, std::int64_t vocabulary) {
  ModelSpec model;
  model.model_type = "qwen3";
  model.hidden_size = 32;
  model.vocab_size = vocabulary;
  for (int layer = 0; layer < kLayers; ++layer) {
    model.layers.push_back({AttentionSpec{heads, kv_heads, 8, true, {}}, GatedMlpSpec{features}});
  }
  return model;
}

ExecutedFlops flops_of(const ModelSpec& model, const std::string& layout, const std::string& stash, int rank) {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.trainer.stash = parse_stash_policy(stash);
  options.batch = kBatch;
  options.sequence_length = kLength;
  return dry_run(model, options, rank).flops;
}

}  // namespace

TEST_CASE("where units divide a rank executes 1/T of one rank's products and attention") {
  const ModelSpec model = model_of(8, 4, 48, 64);
  for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
    const ExecutedFlops one = flops_of(model, "", stash, 0);
    CHECK(one.matmul > 0);
    for (const char* form : {"", ":scatter"}) {
      for (const int degree : {2, 4}) {
        for (int rank = 0; rank < degree; ++rank) {
          CAPTURE(stash);
          CAPTURE(degree);
          const ExecutedFlops here = flops_of(model, cat("tensor=", degree, form), stash, rank);
          CHECK(here.matmul * degree == one.matmul);
          CHECK(here.attention * degree == one.attention);
        }
      }
    }
  }
}

TEST_CASE("where they do not, the excess over one rank's is the printed waste") {
  const ModelSpec model = model_of(12, 4, 50, 61);
  const ExecutedFlops one = flops_of(model, "", "keep", 0);
  const ParamTable table(model);
  for (const char* text : {"tensor=8:replicate", "tensor=8:pad", "tensor=3:replicate", "tensor=6:pad:scatter",
                           "tensor=5:replicate:scatter", "tensor=2:pad"}) {
    const std::string name = text;
    CAPTURE(name);
    const Layout layout = parse_layout(text);
    ExecutedFlops all;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const ExecutedFlops here = flops_of(model, text, "keep", rank);
      all.matmul += here.matmul;
      all.attention += here.attention;
    }
    double products = 0, extra_heads = 0;
    for (const MisfitPrice& price : misfit_prices(table, layout)) {
      const Flops wasted = misfit_bytes(price, layout, ElementType::Float32).matmul * layout.world_size();
      products += 3 * wasted * kLength * kBatch;  // forward, and twice that backward
      extra_heads += static_cast<double>(price.extra_heads);
    }
    CHECK(all.matmul == one.matmul + products);
    CHECK(all.attention == doctest::Approx(one.attention * (1 + extra_heads / (12 * kLayers))).epsilon(1e-12));
  }
}
