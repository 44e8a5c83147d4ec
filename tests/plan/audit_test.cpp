// What an audit counts is what the placement holds, on every model; and its arithmetic keeps its own laws.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/audit_dimensions.h"
#include "octavo/plan/audit_pipeline.h"
#include "octavo/plan/audit_policies.h"
#include "octavo/plan/audit_slices.h"
#include "octavo/spec/decode_state.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"

using namespace octavo;

namespace {

ModelSpec published(const std::string& name) {
  return read_model_spec(cat("tests/data/configs/", name, ".json"));
}

const char* const kModels[] = {"llama-2-7b", "mixtral-8x7b", "qwen3-8b", "qwen3.5-0.8b", "qwen3.5-27b", "smollm2-135m"};

}  // namespace

TEST_CASE("slices of all parameters add up to what the placement stores, on every model and layout") {
  for (const char* name : kModels) {
    const ModelSpec model = published(name);
    const ParamTable table(model);
    for (const char* text : {"", "tensor=2:pad", "tensor=8:replicate", "tensor=3:pad", "fold=3",
                             "tensor=2:replicate fold=2", "data=2:zero1 tensor=16:replicate"}) {
      CAPTURE(name);
      CAPTURE(text);
      const Layout layout = parse_layout(text);
      const int rank = layout.world_size() - 1;
      const Placement placement = place(table, layout, rank);
      std::int64_t slices = 0, parts = 0;
      for (const Parameter& parameter : table.parameters()) slices += slice_of(table, placement, parameter).elements();
      for (const StoredPart& part : placement.parts) parts += part.elements.size();
      CHECK(slices == parts);
      CHECK(stored_elements(table, layout, rank, model) == parts);
      CHECK(parts <= placement.local_elements);  // the rest is padding
    }
  }
}

TEST_CASE("without padding, the bytes of an audit are the engine's but for alignment") {
  const ModelSpec model = published("qwen3.5-0.8b");
  const ParamTable table(model);
  for (const char* text : {"", "tensor=2", "data=4:zero1", "fold=2"}) {
    CAPTURE(text);
    const Layout layout = parse_layout(text);
    const Placement placement = place(table, layout, 0);
    const StateBytes engine = state_bytes(placement, ElementType::BFloat16);
    const StateBytes audit = audit_state(stored_elements(table, layout, 0, model), layout, ElementType::BFloat16);
    CHECK(audit.weights <= engine.weights);
    CHECK(audit.weights == doctest::Approx(engine.weights).epsilon(1e-3));
    CHECK(audit.gradients == doctest::Approx(engine.gradients).epsilon(1e-3));
    CHECK(audit.optimizer == doctest::Approx(engine.optimizer).epsilon(1e-3));
  }
}

TEST_CASE("ZeRO 1 spreads the optimizer, ZeRO 3 weights and gradients too") {
  const auto state = [](const char* text) { return audit_state(1001, parse_layout(text), ElementType::BFloat16); };
  CHECK(state("data=4").optimizer == 12 * 1001);
  CHECK(state("data=4:zero1").optimizer == 12 * 251);
  CHECK(state("data=4:zero1").weights == 2 * 1001);
  CHECK(state("data=4:zero3").weights == 2 * 251);
  CHECK(state("data=4:zero3").gradients == 4 * 251);
}

TEST_CASE("stages hold each block once, a tied embedding twice") {
  for (const char* name : {"qwen3.5-4b", "llama-3-8b", "qwen3-30b-a3b"}) {
    const ModelSpec model = published(name);
    const ParamTable table(model);
    for (const int stages : {2, 4, 7}) {
      const Layout layout = parse_layout(cat("pipeline=", stages));
      std::int64_t sum = 0;
      for (int rank = 0; rank < stages; ++rank) sum += stored_elements(table, layout, rank, model);
      CHECK(sum == num_parameters(model) + (model.tied_embeddings ? model.vocab_size * model.hidden_size : 0));
    }
  }
}

TEST_CASE("caches of all ranks are the model's where the degree fits, more where KV heads are copied") {
  const ModelSpec model = published("qwen3.5-27b");
  const ParamTable table(model);
  const std::int64_t whole = kv_cache_bytes_per_token(model, 1), state = recurrent_state_bytes(model) / 4;
  for (const int degree : {1, 2, 4}) {
    const Layout layout = parse_layout(cat("tensor=", degree));
    CHECK(cache_elements(table, layout, 0, model) * degree == whole);
    CHECK(recurrent_elements(table, layout, 0, model) * degree == state);
  }
  CHECK(cache_elements(table, parse_layout("tensor=8:replicate"), 0, model) * 8 == 2 * whole);
  CHECK(recurrent_elements(table, parse_layout("tensor=32:replicate"), 5, model) * 32 == 2 * state);
  CHECK(cache_elements(table, parse_layout("pipeline=2"), 0, model) * 2 == whole);
}

TEST_CASE("where query heads are shared out, the price of copies is that of K and V weights alone") {
  const ModelSpec model = published("qwen3.5-27b");
  const ParamTable table(model);
  const Layout layout = parse_layout("tensor=8:replicate");
  const std::vector<MisfitPolicy> policies = misfit_policies(table, parse_layout("tensor=8"), ElementType::BFloat16);
  REQUIRE(policies.size() == 2);
  REQUIRE(policies[0].misfit == Misfit::Replicate);
  REQUIRE(policies[0].prices.size() == 1);
  const Placement placement = place(table, layout, 3);
  std::int64_t extra = 0;
  for (const Parameter& parameter : table.parameters()) {
    if (!parameter.name.ends_with("k_proj.weight") && !parameter.name.ends_with("v_proj.weight")) continue;
    extra += slice_of(table, placement, parameter).elements() - parameter.elements() / 8;
  }
  CHECK(policies[0].extra_elements == 8 * extra);
  CHECK(policies[0].bytes[0].weights == 2.0 * extra);
  CHECK(policies[0].prices[0].extra_products == 8 * extra);
  CHECK(policies[1].extra_elements > policies[0].extra_elements);  // zeros for query heads too
  CHECK(misfit_policies(table, parse_layout("tensor=4"), ElementType::BFloat16).empty());
}

TEST_CASE("factors multiply to their number, and divisors divide it") {
  for (const std::int64_t number : {1, 2, 97, 128, 248320, 17408, 485, 999983}) {
    std::int64_t product = 1;
    for (const Factorisation::Power& power : factorise(number).powers) {
      for (int i = 0; i < power.exponent; ++i) product *= power.prime;
    }
    CHECK(product == number);
    CHECK(factorise(number).power_of_two() * factorise(number).odd_part() == number);
    for (const std::int64_t divisor : divisors_up_to(number, 64)) CHECK(number % divisor == 0);
  }
  CHECK(factorise(17408).to_string() == "2^10 * 17");
  CHECK_THROWS_AS(factorise(0), UsageError);
}

TEST_CASE("the degrees of published models are those that their heads allow") {
  const auto exact = [](const char* name) { return fitting_degrees(published(name), 64).exact; };
  const auto copied = [](const char* name) { return fitting_degrees(published(name), 64).with_kv_replication; };
  using Degrees = std::vector<std::int64_t>;
  CHECK(exact("smollm2-135m") == Degrees{1, 3});
  CHECK(exact("llama-3-8b") == Degrees{1, 2, 4, 8});
  CHECK(copied("llama-3-8b") == Degrees{1, 2, 4, 8, 16, 32});
  CHECK(exact("mixtral-8x7b") == Degrees{1, 2, 4, 8});
  CHECK(exact("qwen3.5-0.8b") == Degrees{1, 2});
  CHECK(copied("qwen3.5-4b") == Degrees{1, 2, 4, 8, 16});
}

TEST_CASE("a super-block is the shortest run of layers that repeats") {
  CHECK(super_block_size(published("qwen3.5-27b")) == 4);
  CHECK(super_block_size(published("llama-2-7b")) == 1);
  ModelSpec model = published("qwen3.5-0.8b");
  model.layers.pop_back();
  CHECK(super_block_size(model) == 23);  // nothing repeats
}

TEST_CASE("no contiguous cut has a cheaper slowest stage than the optimal one") {
  ModelSpec model = published("qwen3.5-0.8b");
  model.layers.resize(9);
  for (const std::int64_t tokens : {64, 262144}) {
    for (const bool with_head : {false, true}) {
      const auto slowest = [&](const std::vector<Interval>& stages) {
        const std::vector<Flops> costs = stage_flops(model, stages, tokens, with_head);
        return *std::max_element(costs.begin(), costs.end());
      };
      Flops least = slowest({{0, 1}, {1, 2}, {2, 9}});
      for (std::int64_t a = 1; a < 8; ++a) {
        for (std::int64_t b = a + 1; b < 9; ++b) least = std::min(least, slowest({{0, a}, {a, b}, {b, 9}}));
      }
      const std::vector<Interval> best = optimal_stages(model, 3, tokens, with_head);
      CHECK(slowest(best) == least);
      CHECK(best.front().begin == 0);
      CHECK(best.back().end == 9);
      CHECK(best[0].end == best[1].begin);
    }
  }
  CHECK(optimal_stages(model, 9, 64, true).size() == 9);
  CHECK_THROWS_AS(optimal_stages(model, 10, 64, true), UsageError);
  CHECK_THROWS_AS(even_stages(model, 0, 1), UsageError);
}

TEST_CASE("folding stores an even share whatever the degree") {
  const ModelSpec model = published("qwen3.5-27b");
  const ParamTable table(model);
  for (const int degree : {4, 7, 8, 16}) {
    const FoldInstead fold =
        fold_instead(model, table, parse_layout(cat("data=2 tensor=", degree)), 4096, ElementType::BFloat16);
    CHECK(fold.layout.to_string() == cat("data=2 fold=", degree));
    CHECK(static_cast<double>(fold.elements) * degree == doctest::Approx(num_parameters(model)).epsilon(2e-3));
    CHECK(fold.sent > 0);
  }
}
