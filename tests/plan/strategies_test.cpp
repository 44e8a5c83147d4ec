#include "octavo/plan/strategies.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/strategy_steps.h"
#include "octavo/spec/flops.h"
#include "plan/plan_requests.h"

using namespace octavo;

namespace {

// The paper's: hidden 4,096, as many KV heads as heads, features four times as wide.
constexpr StrategyLayer kPaper{4096, 4096, 4096, 16384};
// One KV head per four heads.
constexpr StrategyLayer kGrouped{4096, 4096, 1024, 14336};

double training(const StrategyLayer& layer, const StrategyRanks& ranks, double tokens, bool again = false) {
  const StrategyTraffic sent = strategy_traffic(layer, ranks, tokens);
  return sent.forward + sent.backward + (again ? sent.inputs_again : 0);
}

/// What one layer more lets an axis send in a step: the model's first layer once more.
double axis_bytes_of_a_layer(const std::string& config, const std::string& layout, Axis axis, std::int64_t length) {
  PlanRequest request = request_of(config, "H100x8", length, length);
  const auto bytes = [&] {
    return price(request, {.layout = parse_layout(layout), .stash = {}}).time.axis(axis).bytes;
  };
  const double before = bytes();
  request.model.layers.push_back(request.model.layers.front());
  return bytes() - before;
}

}  // namespace

TEST_CASE("folding meets tensor parallelism where the paper says: at eight times the hidden size") {
  const FoldCrossover found = fold_crossover(kPaper);
  REQUIRE(found.forward.has_value());
  CHECK(*found.forward == 8 * kPaper.hidden);
  CHECK(*found.with_recompute == 8 * kPaper.hidden);
}

TEST_CASE("at a crossover both send as much and beyond it folding sends less") {
  for (const StrategyLayer& layer : {kPaper, kGrouped}) {
    const FoldCrossover found = fold_crossover(layer);
    for (const int ranks : {2, 4, 8, 64}) {
      const StrategyRanks fold = on_ranks(Strategy::Fold, ranks), tensor = on_ranks(Strategy::Tensor, ranks),
                          scatter = on_ranks(Strategy::TensorScatter, ranks);
      const auto forward = [&](const StrategyRanks& of, double tokens) {
        return strategy_traffic(layer, of, tokens).forward;
      };
      CHECK(forward(fold, *found.forward) == doctest::Approx(forward(tensor, *found.forward)));
      CHECK(forward(fold, 2 * *found.forward) < forward(tensor, 2 * *found.forward));
      CHECK(training(layer, fold, *found.training) == doctest::Approx(training(layer, tensor, *found.training)));
      CHECK(training(layer, fold, *found.training_again) ==
            doctest::Approx(training(layer, scatter, *found.training_again, true)));
    }
  }
}

TEST_CASE("folding meets tensor x sequence only where the sequence ranks gather less than the sums move") {
  CHECK(!fold_crossover(kPaper, 4, 2).has_value());
  const std::optional<double> found = fold_crossover(kGrouped, 4, 2);
  REQUIRE(found.has_value());
  const StrategyRanks both{Strategy::TensorSequence, 4, 2};
  CHECK(strategy_traffic(kGrouped, on_ranks(Strategy::Fold, 8), *found).forward ==
        doctest::Approx(strategy_traffic(kGrouped, both, *found).forward));
  CHECK(!fold_crossover(kGrouped, 2, 8).has_value());
}

TEST_CASE("tensor x sequence is tensor alone on one sequence rank and sequence alone on one tensor rank") {
  constexpr double kTokens = 16384;
  for (const int ranks : {2, 8}) {
    const StrategyRanks as_tensor{Strategy::TensorSequence, ranks, 1}, as_sequence{Strategy::TensorSequence, 1, ranks};
    const StrategyRanks tensor = on_ranks(Strategy::Tensor, ranks),
                        sequence = on_ranks(Strategy::SequenceGather, ranks);
    for (const auto& [both, one] : {std::pair{as_tensor, tensor}, {as_sequence, sequence}}) {
      const StrategyTraffic a = strategy_traffic(kGrouped, both, kTokens), b = strategy_traffic(kGrouped, one, kTokens);
      CHECK(a.forward == b.forward);
      CHECK(a.backward == b.backward);
      CHECK(a.once_a_step == b.once_a_step);
      const StrategyMemory c = strategy_memory(kGrouped, both, kTokens), d = strategy_memory(kGrouped, one, kTokens);
      CHECK(c.parameters == d.parameters);
      CHECK(c.kept == d.kept);
      CHECK(c.kept_inputs == d.kept_inputs);
      CHECK(c.gathered_keys_values == d.gathered_keys_values);
    }
  }
}

TEST_CASE("one rank sends nothing and holds everything") {
  for (int i = 0; i < kNumStrategies; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    CAPTURE(strategy_title(strategy));
    const StrategyTraffic sent = strategy_traffic(kGrouped, on_ranks(strategy, 1), 4096);
    CHECK(sent.forward == 0);
    CHECK(sent.inputs_again == 0);
    CHECK(sent.once_a_step == 0);
    // Round a ring of one the gradients of keys and values still go round once.
    CHECK(sent.backward == (strategy == Strategy::SequenceRing ? 2 * 4096 * kGrouped.key_rows : 0));
    const StrategyMemory held = strategy_memory(kGrouped, on_ranks(strategy, 1), 4096);
    CHECK(held.parameters == kGrouped.parameters());
    CHECK(held.kept == 4096 * kGrouped.kept_per_token());
    CHECK(held.kept_inputs == 4096 * kGrouped.hidden);
  }
}

TEST_CASE("folding holds as little as tensor parallelism of weights and as sequence parallelism of tokens") {
  const StrategyMemory fold = strategy_memory(kGrouped, on_ranks(Strategy::Fold, 8), 65536);
  CHECK(fold.parameters == strategy_memory(kGrouped, on_ranks(Strategy::Tensor, 8), 65536).parameters);
  CHECK(fold.kept == strategy_memory(kGrouped, on_ranks(Strategy::SequenceRing, 8), 65536).kept);
}

TEST_CASE("a layer's FLOPs over all ranks are those of the model's layer") {
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-32b.json");
  const std::optional<StrategyLayer> layer = strategy_layer(model);
  REQUIRE(layer.has_value());
  CHECK(layer->parameters() == static_cast<double>(matmul_parameters(model, model.layers.front())));
  const StrategyFlops found = strategy_flops(*layer, 8, 2 * 8192, 8192);
  const Flops wanted = 2 * layer_flops(model, model.layers.front(), 8192, CausalPairs::HalfSquare);
  CHECK(8 * (found.linear + found.attention) == doctest::Approx(wanted));
}

TEST_CASE("a model of experts alone has no layer in closed form") {
  CHECK(!strategy_layer(read_model_spec("tests/data/configs/mixtral-8x7b.json")).has_value());
}

TEST_CASE("what a layer sends in closed form is what a plan of the same layout is priced to send for it") {
  constexpr std::int64_t kTokens = 16384;
  constexpr double kElement = 2;
  const StrategyLayer layer = *strategy_layer(read_model_spec("tests/data/configs/llama-3-8b.json"));
  const auto closed = [&](Strategy strategy, bool again) {
    return kElement * training(layer, on_ranks(strategy, 8), kTokens, again);
  };
  CHECK(axis_bytes_of_a_layer("llama-3-8b", "tensor=8", Axis::Tensor, kTokens) ==
        doctest::Approx(closed(Strategy::Tensor, false)).epsilon(0.001));
  CHECK(axis_bytes_of_a_layer("llama-3-8b", "tensor=8:scatter", Axis::Tensor, kTokens) ==
        doctest::Approx(closed(Strategy::TensorScatter, true)).epsilon(0.001));
  CHECK(axis_bytes_of_a_layer("llama-3-8b", "sequence=8:gather", Axis::Sequence, kTokens) ==
        doctest::Approx(closed(Strategy::SequenceGather, false)).epsilon(0.001));
  CHECK(axis_bytes_of_a_layer("llama-3-8b", "sequence=8:ulysses", Axis::Sequence, kTokens) ==
        doctest::Approx(closed(Strategy::SequenceUlysses, false)).epsilon(0.001));
  // Gradients of weights travel in float32: once more the width of what moves in forward.
  const double weights = 7.0 / 8 * layer.parameters() * kElement;
  CHECK(axis_bytes_of_a_layer("llama-3-8b", "fold=8:weights", Axis::Fold, kTokens) ==
        doctest::Approx(closed(Strategy::Fold, false) + weights).epsilon(0.001));
}

TEST_CASE("indices of a zigzag work on the same pairs and all cuts on all pairs") {
  for (const int ranks : {2, 3, 8}) {
    const TokenCut zigzag{TokenOrder::Zigzag, ranks}, contiguous{TokenOrder::Contiguous, 2 * ranks};
    std::int64_t sum = 0, all = 0;
    for (int index = 0; index < ranks; ++index) {
      CHECK(chunk_pairs(zigzag, index) == 2 * ranks + 1);
      sum += chunk_pairs(zigzag, index);
    }
    for (int index = 0; index < 2 * ranks; ++index) all += chunk_pairs(contiguous, index);
    CHECK(sum == all);
  }
}

TEST_CASE("where fold sends as much as another strategy in a whole step, it does so by the formulas, and less beyond") {
  const StrategyLayer layer = *strategy_layer(read_model_spec("tests/data/configs/llama-3-8b.json"));
  const auto sent = [&](const StrategyRanks& ranks, double tokens) {
    const StrategyTraffic traffic = strategy_traffic(layer, ranks, tokens);
    return traffic.forward + traffic.backward + traffic.once_a_step;
  };
  const StrategyRanks fold = on_ranks(Strategy::Fold, 8);
  int never = 0;
  for (const StrategyRanks& ranks :
       {on_ranks(Strategy::Data, 8), on_ranks(Strategy::Tensor, 8), on_ranks(Strategy::TensorScatter, 8),
        on_ranks(Strategy::SequenceGather, 8), on_ranks(Strategy::SequenceRing, 8),
        on_ranks(Strategy::SequenceUlysses, 8), StrategyRanks{Strategy::TensorSequence, 4, 2}}) {
    CAPTURE(strategy_title(ranks.strategy));
    const auto crossover = fold_crossover_of_step(layer, ranks);
    if (!crossover) {
      ++never;
      for (const double tokens : {1e3, 1e6, 1e9}) CHECK(sent(fold, tokens) > sent(ranks, tokens));
      continue;
    }
    CHECK(sent(fold, *crossover) == doctest::Approx(sent(ranks, *crossover)));
    CHECK(sent(fold, 2 * *crossover) < sent(ranks, 2 * *crossover));
    CHECK(sent(fold, *crossover / 2) > sent(ranks, *crossover / 2));
  }
  CHECK(never >= 3);  // data, sequence gather and ulysses
  CHECK(*fold_crossover_of_step(layer, on_ranks(Strategy::Tensor, 8)) ==
        doctest::Approx(*fold_crossover(layer).training));
}

TEST_CASE("the compared layouts are every strategy over the same ranks") {
  const ModelSpec model = read_model_spec("tests/data/configs/llama-3-8b.json");
  const std::vector<ComparedLayout> found = compared_layouts(model, 8);
  CHECK(found.size() == 15);
  for (const ComparedLayout& each : found) {
    CHECK(each.layout.world_size() == 8);
    CHECK(each.ranks.all() == 8);
  }
  CHECK_THROWS_AS(compared_layouts(model, 1), UsageError);
}

TEST_CASE("a compared tensor degree that does not divide a dimension is priced with copies") {
  const PlanRequest request = request_of("qwen3.5-27b", "H100x8", 8192, 8192);
  int replicated = 0;
  for (const ComparedLayout& each : compared_layouts(request.model, 8)) {
    const int tensor = each.layout.mesh.size(Axis::Tensor);
    CAPTURE(each.layout.to_string());
    CHECK((each.layout.misfit == Misfit::Replicate) == (tensor == 8));  // 4 KV heads
    replicated += tensor == 8;
    if (tensor > 1) CHECK(strategy_step(request, each.layout, {}).priced.has_value());
  }
  CHECK(replicated == 2);
}

TEST_CASE("a step that breaks a rule of the search says which and has no price") {
  const PlanRequest request = request_of("llama-3-8b", "H100x8x2", 8192, 8192);
  const StashPolicy stash;
  CHECK(strategy_step(request, parse_layout("data=8:zero3"), stash).broken.find("a batch of 1 sequence over 8") == 0);
  const StrategyStep heads = strategy_step(request, parse_layout("sequence=16:ulysses"), stash);
  CHECK(!heads.priced.has_value());
  CHECK(heads.broken.find("ulysses") == 0);
  CHECK(strategy_step(request, parse_layout("tensor=16"), stash).broken.find("tensor=16 does not divide") == 0);
  CHECK(strategy_step(request, parse_layout("fold=16:weights"), stash).priced.has_value());
}

TEST_CASE("no step of the front is beaten and every other one that fits is") {
  const PlanRequest request = request_of("llama-3-8b", "H100x8", 32768, 32768);
  std::vector<StrategyStep> steps;
  for (const ComparedLayout& each : compared_layouts(request.model, 8)) {
    steps.push_back(strategy_step(request, each.layout, parse_stash_policy("recompute")));
  }
  const std::vector<std::size_t> front = time_memory_front(steps, request.memory_limit);
  REQUIRE(!front.empty());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].priced || steps[i].priced->memory.total() > request.memory_limit) continue;
    const auto beats = [&](const PricedPlan& a, const PricedPlan& b) {
      const bool as_good = a.time.total <= b.time.total && a.memory.total() <= b.memory.total();
      return as_good && (a.time.total < b.time.total || a.memory.total() < b.memory.total());
    };
    bool is_beaten = false;
    for (const StrategyStep& other : steps) {
      is_beaten = is_beaten || (other.priced && beats(*other.priced, *steps[i].priced));
    }
    CHECK(is_beaten != (std::find(front.begin(), front.end(), i) != front.end()));
  }
  CHECK(time_memory_front(steps, 1).empty());
}

// The paper's example, on what a plan may use of an H100. Batches of 8 sequences, so that any data degree divides them;
// tensor ranks keep their own tokens alone (scatter), without which 16 ranks would not do either. All recomputed, and
// of the 8 ranks no stash policy fits.
TEST_CASE("a replica that needs tensor 8 x sequence 2 = 16 ranks fits one node of 8 under fold") {
  constexpr std::int64_t kTokens = 648 * 1024;
  const ModelSpec model = read_model_spec("tests/data/configs/qwen3-8b.json");
  const MemoryModel memory(model, {.sequence_length = kTokens, .batch = 8});
  const Bytes limit = default_memory_limit(read_cluster("H100x8"));
  const StashPolicy recompute = parse_stash_policy("recompute");
  const auto peak = [&](const std::string& layout, const StashPolicy& stash) {
    return memory.peak({.layout = parse_layout(layout), .micro_batch = 1, .stash = stash}).total();
  };
  int layouts = 0;
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const int tensor : {1, 2, 4, 8}) {
    for (int sequence = 1; tensor * sequence <= 8; sequence *= 2) {
      for (const char* zero : {"zero0", "zero1", "zero3"}) {
        for (const char* form : {"gather", "ring", "ulysses"}) {
          for (const char* tensor_form : {"allreduce", "scatter"}) {
            for (const char* stash : {"keep", "attention,qkv,gate_up", "attention,qkv", "attention", "recompute"}) {
              const int data = 8 / tensor / sequence;
              const std::string layout = cat("data=", data, ":", zero, " sequence=", sequence, ":", form,
                                             " tensor=", tensor, ":", tensor_form);
              CAPTURE(layout);
              const Bytes bytes = peak(layout, parse_stash_policy(stash));
              CHECK(bytes > limit);
              least = std::min(least, bytes);
              ++layouts;
            }
          }
        }
      }
    }
  }
  CHECK(layouts == 10 * 3 * 3 * 2 * 5);
  const Bytes sixteen = peak("sequence=2:gather tensor=8:scatter", recompute), fold = peak("fold=8", recompute);
  INFO("least of 8 ranks ", format_bytes(least), ", 16 ranks ", format_bytes(sixteen), ", fold ", format_bytes(fold),
       ", limit ", format_bytes(limit));
  CHECK(sixteen <= limit);
  CHECK(fold <= limit);
}
