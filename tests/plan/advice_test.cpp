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

TEST_CASE("the fewest accelerators of a strategy leave the rest to data") {
  const auto all = strategy_reach(request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192));
  CHECK(all.size() == 9);
  for (const StrategyReach& reach : all) {
    CAPTURE(reach.name);
    CHECK((reach.fewest_accelerators.has_value() || reach.name == "pipeline"));  // too many micro-batches in flight
    if (reach.fewest_accelerators && reach.name != "data") CHECK(*reach.fewest_accelerators * reach.data_degree == 64);
  }
  // 70B parameters in 16 + 4 bytes do not fit 8 x 73.6 GB, whatever is done.
  CHECK(*reach_of(all, "fold").fewest_accelerators >= 16);
  const auto none = strategy_reach(request_of("llama-3.1-405b", "H100x8", 1 << 18, 8192));
  for (const StrategyReach& reach : none) {
    CHECK(!reach.fewest_accelerators.has_value());
    CHECK(reach.longest_sequence == 0);
    CHECK(reach.largest_micro_batch == 0);
  }
}

TEST_CASE("slower parts never shorten the step, and the matmul rate counts for most of a dense model") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  const auto all = sensitivities(request, search(request));
  REQUIRE(all.size() == 4);
  for (const Sensitivity& each : all) {
    CAPTURE(each.what);
    CHECK(each.slower >= 0);
    CHECK(each.faster <= 0);
    CHECK(each.slower < 0.1);
    if (each.what == "matmul rate") CHECK(each.slower > 0.05);
  }
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

TEST_CASE("confidence is a range by the error of the rules") {
  PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 19, 8192);
  const SearchResult found = search(request);
  const Confidence some = confidence(request, found);
  CHECK(some.error == request.rules.mean_error);
  CHECK(some.least < found.best.front().time.total);
  CHECK(some.most > found.best.front().time.total);
  request.rules.mean_error = 0;
  CHECK(confidence(request, found).least == confidence(request, found).most);
}
