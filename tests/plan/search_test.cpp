#include "octavo/plan/search.h"

#include <doctest/doctest.h>

#include <set>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "plan/plan_requests.h"
#include "plan/plan_space.h"

using namespace octavo;

namespace {

/// Every layout of the space that breaks no rule but those of memory and dominance.
template <class Visit>
void for_each_plan(const PlanRequest& request, const SearchSpace& space, const Visit& visit) {
  const PlanSpace plans(request, space);
  for (const Degrees& degrees : plans.degrees()) {
    if (plans.broken(degrees)) continue;
    StepPlan plan;
    for (const DeviceMesh& order : plans.orders(degrees)) {
      plan.layout.mesh = order;
      for (const TensorOption& tensor : plans.tensor(degrees)) {
        if (tensor.broken) continue;
        plan.layout.tensor_form = tensor.form;
        plan.layout.misfit = tensor.misfit;
        for (const SequenceOption& sequence : plans.sequence(degrees)) {
          if (sequence.broken) continue;
          plan.layout.sequence_form = sequence.form;
          for (const FoldForm fold : plans.fold(degrees)) {
            plan.layout.fold_form = fold;
            for (const PipelineOption& pipeline : plans.pipeline(degrees)) {
              plan.layout.pipeline_form = pipeline.form;
              plan.layout.virtual_stages = pipeline.virtual_stages;
              for (const std::int64_t micro_batch : plans.micro_batches(degrees)) {
                plan.micro_batch = micro_batch;
                if (plans.broken(degrees, pipeline, micro_batch)) continue;
                for (const ZeroStage zero : plans.zero(degrees)) {
                  plan.layout.zero = zero;
                  for (const StashPolicy& stash : plans.stashes()) {
                    plan.stash = stash;
                    visit(plan);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

const RuledOut& checked(const SearchResult& result, Rule rule) {
  const RuledOut& out = result.by(rule);
  CAPTURE(rule_name(rule));
  CHECK((out.layouts > 0) == !out.example.empty());
  return out;
}

}  // namespace

TEST_CASE("the search finds the best of all plans priced one by one") {
  for (const PlanRequest& request :
       {request_of("llama-3-8b", "H100x8x2", 1 << 17, 8192), request_of("qwen3.5-9b", "H100x4x2", 1 << 16, 4096),
        request_of("qwen3-30b-a3b", "H100x8", 1 << 16, 4096),
        request_of("llama-2-7b", "A100-80x3x2", 12 << 12, 4096)}) {
    const MemoryModel memory(request.model, request.job);
    const TimeModel time(request.model, request.job, request.cluster, request.rules);
    Seconds best = 1e30;
    std::int64_t fitting = 0, all = 0;
    for_each_plan(request, {}, [&](const StepPlan& plan) {
      ++all;
      if (memory.peak(plan).total() > request.memory_limit) return;
      ++fitting;
      best = std::min(best, time.step(plan).total);
    });
    const SearchResult found = search(request);
    CAPTURE(request.model.model_type);
    REQUIRE(!found.best.empty());
    CHECK(found.best.front().time.total == best);
    CHECK(found.front.front().time.total == best);
    CHECK(found.priced <= fitting);
    const std::int64_t died_later = found.by(Rule::Dominated).layouts + found.by(Rule::Memory).layouts;
    CHECK(found.priced + died_later == all);
  }
}

TEST_CASE("every plan that is returned fits, is priced as by itself, and no other is faster with more headroom") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  const SearchResult found = search(request);
  REQUIRE(found.best.size() > 10);
  REQUIRE(found.front.size() > 3);
  std::set<std::string> degrees;
  Seconds last = 0;
  for (const PricedPlan& plan : found.best) {
    CHECK(plan.memory.total() <= request.memory_limit);
    CHECK(plan.plan.layout.world_size() == 64);
    CHECK(price(request, plan.plan).time.total == plan.time.total);
    CHECK(price(request, plan.plan).memory.total() == plan.memory.total());
    CHECK(parse_layout(plan.plan.layout.to_string()).to_string() == plan.plan.layout.to_string());
    CHECK(plan.time.total >= last);
    last = plan.time.total;
  }
  for (std::size_t i = 1; i < found.front.size(); ++i) {
    CHECK(found.front[i].time.total > found.front[i - 1].time.total);
    CHECK(found.front[i].memory.total() < found.front[i - 1].memory.total());
  }
  CHECK(found.strategies.front().plan.time.total == found.best.front().time.total);
  for (const StrategyBest& strategy : found.strategies) {
    CHECK(strategy.name == strategy_name(strategy.plan.plan.layout));
  }
}

TEST_CASE("degrees of the largest clusters multiply to their accelerators") {
  for (const char* cluster : {"H100x8x8192", "B200x8x8192", "H100x1x65536", "H100x8x12500"}) {
    const PlanRequest request = request_of("qwen3-30b-a3b", cluster, 1 << 20, 8192);
    const SearchSpace space;
    for (const Degrees& degrees : PlanSpace(request, space).degrees()) {
      REQUIRE(std::int64_t{1} * degrees.replica() * degrees.data == request.cluster.world_size());
    }
  }
}

TEST_CASE("ZeRO stages and schedules that a space leaves out are in no plan, and what is left is priced as before") {
  const PlanRequest request = request_of("llama-3-70b", "H100x8x8", 1 << 22, 8192);
  SearchSpace some;
  some.zero = {ZeroStage::None, ZeroStage::Weights};
  some.schedules = {PipelineForm::OneForwardOneBackward};
  const SearchResult all = search(request), found = search(request, some);
  REQUIRE(!found.best.empty());
  CHECK(found.layouts < all.layouts);
  CHECK(found.best.front().time.total >= all.best.front().time.total);
  bool has_zero0 = false;
  for (const PricedPlan& plan : found.best) {
    CHECK(plan.plan.layout.zero != ZeroStage::Optimizer);
    CHECK(plan.plan.layout.pipeline_form == PipelineForm::OneForwardOneBackward);
  }
  // zero0 is not taken for ruled out where zero1, which holds less, was never tried.
  some.zero = {ZeroStage::None};
  for (const PricedPlan& plan : search(request, some).best)
    has_zero0 = has_zero0 || plan.plan.layout.zero == ZeroStage::None;
  CHECK(has_zero0);
  some.zero = {ZeroStage::None, ZeroStage::Weights};
  some.axes = {true, true, false, false, false, true};
  const SearchResult both = search(request, some);
  some.zero = {ZeroStage::None};
  const SearchResult zero0 = search(request, some);
  if (!zero0.best.empty()) CHECK(both.best.front().time.total <= zero0.best.front().time.total);
}

TEST_CASE("the result is the same for any number of threads") {
  const PlanRequest request = request_of("qwen3.5-27b", "H100x8x4", 1 << 20, 8192);
  SearchSpace one, many;
  one.threads = 1;
  many.threads = 5;
  const SearchResult a = search(request, one), b = search(request, many);
  CHECK(a.layouts == b.layouts);
  CHECK(a.priced == b.priced);
  REQUIRE(a.best.size() == b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    CHECK(a.best[i].plan.layout.to_string() == b.best[i].plan.layout.to_string());
    CHECK(a.best[i].plan.micro_batch == b.best[i].plan.micro_batch);
  }
  CHECK(a.front.size() == b.front.size());
  for (int rule = 0; rule < kNumRules; ++rule) {
    CHECK(a.ruled_out[rule].layouts == b.ruled_out[rule].layouts);
    CHECK(a.ruled_out[rule].example == b.ruled_out[rule].example);
  }
}

TEST_CASE("each rule rules out what breaks it, and says the numbers") {
  const SearchResult hybrid = search(request_of("qwen3.5-27b", "H100x8x16", 1 << 20, 8192));
  CHECK(checked(hybrid, Rule::Layers).example.find("pipeline=128 over 64 layers") != std::string::npos);
  CHECK(checked(hybrid, Rule::Units).example.find("tensor=8 does not divide kv_heads") != std::string::npos);
  CHECK(checked(hybrid, Rule::Heads).example.find("ulysses") != std::string::npos);
  CHECK(checked(hybrid, Rule::Schedule).example.find("multiples") != std::string::npos);
  CHECK(checked(hybrid, Rule::Memory).example.find("GB in the") != std::string::npos);
  CHECK(checked(hybrid, Rule::Dominated).layouts > 0);
  CHECK(checked(hybrid, Rule::Experts).layouts == 0);
  const SearchResult experts = search(request_of("mixtral-8x7b", "H100x8x2", 1 << 18, 8192));
  CHECK(checked(experts, Rule::Experts).example.find("over 8 experts") != std::string::npos);
  const SearchResult few = search(request_of("llama-3-8b", "H100x8x4", 1 << 14, 8192));
  CHECK(checked(few, Rule::Batch).example.find("2 sequences over 32 ranks") != std::string::npos);
  const SearchResult tiny = search(request_of("llama-3-8b", "H100x8x4", 1 << 10, 16));
  CHECK(checked(tiny, Rule::Tokens).example.find("16 tokens over 2 x") != std::string::npos);
}

TEST_CASE("nothing that fits is an empty result, with the reason") {
  PlanRequest request = request_of("llama-3-70b", "H100x1", 8192, 8192);
  const SearchResult found = search(request);
  CHECK(found.best.empty());
  CHECK(found.priced == 0);
  CHECK(checked(found, Rule::Memory).layouts > 0);
  request.memory_limit = 0;
  CHECK_THROWS_AS(search(request), UsageError);
}

TEST_CASE("a restricted space holds what it allows alone") {
  const PlanRequest request = request_of("llama-3-8b", "H100x8", 1 << 18, 8192);
  SearchSpace space;
  space.runnable = true;
  space.stash = parse_stash_policy("recompute");
  space.micro_batch = 2;
  const SearchResult found = search(request, space);
  REQUIRE(!found.best.empty());
  for (const PricedPlan& plan : found.best) {
    CHECK_NOTHROW(check_runnable(plan.plan.layout));
    CHECK(plan.plan.micro_batch == 2);
    CHECK(plan.plan.stash.to_string() == "recompute");
  }
  space.axes[static_cast<int>(Axis::Fold)] = space.axes[static_cast<int>(Axis::Tensor)] = false;
  for (const PricedPlan& plan : search(request, space).best) CHECK(strategy_name(plan.plan.layout) == "data");
}

TEST_CASE("a larger micro-batch needs at least about as much memory, and zero0 at least as much as zero1") {
  const PlanRequest request = request_of("llama-3-8b", "H100x8x2", 1 << 18, 4096);
  const MemoryModel memory(request.model, request.job);
  for_each_plan(request, {}, [&](const StepPlan& plan) {
    if (request.job.batch % (2 * plan.micro_batch * plan.layout.mesh.size(Axis::Data)) != 0) return;
    StepPlan larger = plan;
    larger.micro_batch *= 2;
    const auto bytes = static_cast<double>(memory.peak(plan).total());
    StepPlan zero0 = plan;
    zero0.layout.zero = ZeroStage::None;
    if (plan.layout.zero == ZeroStage::Optimizer) CHECK(static_cast<double>(memory.peak(zero0).total()) >= bytes);
    const bool falls = static_cast<double>(memory.peak(larger).total()) * 1.05 < bytes;
    if (falls) CHECK_MESSAGE(!falls, plan.layout.to_string(), " micro-batch ", plan.micro_batch);
  });
}

TEST_CASE("the best layout at 4096 tokens is another than at 262144") {
  const auto winner = [](std::int64_t length) {
    const SearchResult found = search(request_of("qwen3.5-27b", "H100x8x8", 1 << 22, length));
    REQUIRE(!found.best.empty());
    return found.best.front().plan.layout.to_string();
  };
  CHECK(winner(4096) != winner(262144));
}
