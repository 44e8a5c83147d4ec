#include "octavo/plan/advice.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "plan/plan_requests.h"

using namespace octavo;

namespace {

const StrategyReach& reach_of(const std::vector<StrategyReach>& all, const std::string& name) {
  for (const StrategyReach& reach : all) {
    if (reach.name == name) return reach;
  }
  throw InternalError("no strategy " + name);
}

}  // namespace

TEST_CASE("changes make a plan fit, the fastest first, and one that fits needs none") {
  const PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 19, 8192);
  const StepPlan wanted{parse_layout("data=8"), 1, {}};
  REQUIRE(price(request, wanted).memory.total() > request.memory_limit);
  const auto changes = smallest_changes(request, wanted);
  REQUIRE(!changes.empty());
  for (const PlanChange& change : changes) {
    CAPTURE(change.what);
    CHECK(change.plan.memory.total() <= request.memory_limit);
    CHECK(change.plan.time.total >= changes.front().plan.time.total);
  }
  CHECK(smallest_changes(request, changes.front().plan.plan).empty());
}

TEST_CASE("where one change is not enough two are tried") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  const StepPlan wanted{parse_layout("data=16 tensor=4"), 2, {}};
  const auto changes = smallest_changes(request, wanted);
  REQUIRE(!changes.empty());
  CHECK(changes.front().what.find(", and ") != std::string::npos);
}

TEST_CASE("what a strategy reaches fits, and a step further does not") {
  PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 19, 8192);
  const StrategyReach fold = reach_of(strategy_reach(request), "fold");
  CHECK(fold.largest_micro_batch > 1);
  CHECK(fold.longest_sequence > 100000);
  const auto fits = [&](std::int64_t length, std::int64_t micro_batch) {
    request.job = {length, micro_batch, ElementType::BFloat16};
    Bytes least = 1ll << 60;
    for (const char* layout : {"fold=8:weights", "fold=8:activations"}) {
      least = std::min(
          least, price(request, {parse_layout(layout), micro_batch, parse_stash_policy("recompute")}).memory.total());
    }
    return least <= request.memory_limit;
  };
  CHECK(fits(fold.longest_sequence, 1));
  CHECK(!fits(fold.longest_sequence + 1024, 1));
  CHECK(fits(8192, fold.largest_micro_batch));
  CHECK(!fits(8192, fold.largest_micro_batch + 1));
}

TEST_CASE("the fewest accelerators of a strategy hold a layout that fits, whether it divides the cluster or not") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  const auto all = strategy_reach(request);
  CHECK(all.size() == 9);
  for (const StrategyReach& reach : all) {
    CAPTURE(reach.name);
    REQUIRE(reach.fewest.has_value());
    const Layout& layout = reach.fewest->plan.layout;
    const int ranks = layout.world_size();
    CAPTURE(layout.to_string());
    CHECK(reach.times == 64 / ranks);
    CHECK(strategy_name(layout) == reach.name);
    // 70B parameters in 16 + 4 bytes do not fit 16 x 73.6 GB, and 64 ranks are enough by every strategy.
    CHECK(ranks >= 17);
    const PricedPlan plan = price(request, reach.fewest->plan);
    CHECK(plan.memory.total() <= request.memory_limit);
    CHECK(plan.time.total == reach.fewest->time.total);
  }
  CHECK(reach_of(all, "fold").fewest->plan.layout.world_size() <= 18);
  CHECK(reach_of(all, "pipeline + tensor").fewest->plan.layout.world_size() <= 20);
  const auto none = strategy_reach(request_of("llama-3.1-405b", "H100x8", 1 << 18, 8192));
  for (const StrategyReach& reach : none) {
    CHECK(!reach.fewest.has_value());
    CHECK(reach.longest_sequence == 0);
    CHECK(reach.largest_micro_batch == 0);
  }
}

TEST_CASE("advice keeps to the axes of the space") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  SearchSpace space;
  space.axes = {true, true, false, false, false, true};  // pipeline, data, tensor
  const auto reaches = strategy_reach(request, space);
  CHECK(reaches.size() == 4);  // data, tensor, pipeline, both
  const StepPlan wanted{parse_layout("pipeline=2 data=4:zero1 tensor=8:scatter"), 4, {}};
  const auto changes = smallest_changes(request, wanted, space);
  REQUIRE(!changes.empty());
  for (const PlanChange& change : changes) {
    CHECK(change.plan.plan.layout.mesh.size(Axis::Fold) == 1);
    CHECK(change.plan.plan.layout.mesh.size(Axis::Sequence) == 1);
  }
  space.axes = {true, false, false, false, true, true};  // no data
  for (const StrategyReach& reach : strategy_reach(request, space)) {
    if (reach.fewest) CHECK(reach.fewest->plan.layout.mesh.size(Axis::Data) == 1);
  }
}

TEST_CASE("what one sequence fits on, the fewest accelerators are found for") {
  for (const char* cluster : {"H100x8x2", "H100x8x4", "A100-40x8x3"}) {
    for (const StrategyReach& reach : strategy_reach(request_of("qwen3.5-9b", cluster, 3 << 20, 8192))) {
      CAPTURE(cluster);
      CAPTURE(reach.name);
      if (reach.largest_micro_batch > 0) CHECK(reach.fewest.has_value());  // 384 sequences: divided by 16, 24, 32
    }
  }
}

TEST_CASE("slower parts never shorten the step, and the matmul rate counts for most of a dense model") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  const auto all = sensitivities(request, search(request));
  REQUIRE(all.size() == 10);
  for (const Sensitivity& each : all) {
    CAPTURE(each.what);
    CHECK(each.slower >= 0);
    CHECK(each.faster <= 0);
    if (each.kind == Sensitivity::Kind::TenPercent) CHECK(each.slower < 0.1);
    if (each.what == "matmul and attention rates") CHECK(each.slower > 0.05);
  }
}

TEST_CASE("a sensitivity names the layout that a whole search under the changed constants finds") {
  PlanRequest request = request_of("llama-3-70b", "H100x8x2", 1 << 20, 8192);
  for (const Sensitivity& each : sensitivities(request, search(request))) {
    if (each.what.find("tensor") == std::string::npos) continue;
    PlanRequest changed = request;
    changed.rules.tensor_exposed = 0;
    const SearchResult found = search(changed);
    const std::string best = each.winner_if_faster.value_or(search(request).best.front().plan.layout.to_string());
    CHECK(found.best.front().plan.layout.to_string() == best);
  }
}

TEST_CASE("fold by activations takes as long as tensor with scatter, for it sends the same") {
  PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 19, 8192);
  const PricedPlan fold = price(request, {parse_layout("fold=8:activations"), 1, {}});
  const PricedPlan tensor = price(request, {parse_layout("tensor=8:scatter"), 1, {}});
  CHECK(fold.time.axis(Axis::Fold).exposed == doctest::Approx(tensor.time.axis(Axis::Tensor).exposed).epsilon(0.03));
  request.rules.tensor_exposed = 0;
  CHECK(price(request, {parse_layout("fold=8:activations"), 1, {}}).time.axis(Axis::Fold).exposed == 0);
}

TEST_CASE("winners by length hold the tokens of a batch") {
  const PlanRequest request = request_of("qwen3.5-9b", "H100x8x2", 1 << 19, 8192);
  const std::int64_t lengths[] = {4096, 65536, 1 << 20};
  const auto winners = winners_by_length(request, {}, lengths);
  REQUIRE(winners.size() == 3);
  REQUIRE(winners[0].plan.has_value());
  REQUIRE(winners[1].plan.has_value());
  CHECK(!winners[2].plan.has_value());
  CHECK(winners[0].plan->plan.layout.to_string() != winners[1].plan->plan.layout.to_string());
}

TEST_CASE("the best by number of nodes is that of a search on as many") {
  const PlanRequest request = request_of("qwen3.5-9b", "H100x8x2", 1 << 20, 8192);
  const int nodes[] = {1, 3};
  const auto winners = winners_by_nodes(request, {}, nodes);
  REQUIRE(winners.size() == 2);
  for (const SizeWinner& winner : winners) {
    const SearchResult found =
        search(request_of("qwen3.5-9b", cat("H100x8x", winner.num_nodes).c_str(), 1 << 20, 8192));
    REQUIRE(winner.plan.has_value() == !found.best.empty());
    if (winner.plan) CHECK(winner.plan->plan.layout.to_string() == found.best.front().plan.layout.to_string());
  }
}

TEST_CASE("confidence says what the best plan has that no published run had") {
  PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 19, 8192);
  SearchSpace space;
  space.axes = {false, true, false, false, false, true};  // data and tensor
  const SearchResult found = search(request, space);
  const Confidence measured = confidence(request, found);
  CHECK(measured.mean_error == request.rules.mean_error);
  CHECK(measured.is_measured());
  int near = 0;
  for (const PricedPlan& plan : found.best)
    near += plan.time.total <= found.best[0].time.total * (1 + measured.likely_error());
  CHECK(measured.as_fast == near - 1);

  space.axes = {false, false, false, false, true, false};
  const Confidence folded = confidence(request, search(request, space));
  CHECK(folded.beyond == std::vector<std::string>{"fold"});
  request.cluster.accelerator.network.nic_bits.value /= 2;
  CHECK(confidence(request, search(request, space)).beyond.size() == 2);

  request = request_of("qwen3.5-9b", "MI300Xx8", 1 << 19, 8192);
  request.rules = find_time_rules("megatron-core", "MI300X").rules;
  CHECK(!confidence(request, search(request)).has_runs());
}
