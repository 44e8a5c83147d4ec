#include "octavo/plan/pipeline_schedule.h"

#include <algorithm>

#include "golden_cases.h"
#include "octavo/base/random.h"
#include "octavo/plan/pipeline_simulation.h"

using namespace octavo;

namespace {

std::vector<StageTimes> random_stages(int count, double spread, const CounterRandom& random, std::uint64_t draw) {
  std::vector<StageTimes> stages;
  for (int i = 0; i < count; ++i) {
    const auto factor = [&](int which) { return 1 + spread * random.uniform(draw * 1000 + 3 * i + which); };
    stages.push_back({factor(0), factor(1), factor(2)});
  }
  return stages;
}

}  // namespace

TEST_CASE("closed forms of gpipe, 1f1b and interleaved equal their simulation for equal stages") {
  const StageTimes times = {1.0, 1.25, 0.5};
  for (const PipelineKind kind :
       {PipelineKind::GPipe, PipelineKind::OneForwardOneBackward, PipelineKind::Interleaved}) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 18; ++m) {
        for (int v = 1; v <= 3; ++v) {
          const PipelineShape shape = {kind, p, m, v};
          if (shape_problem(shape)) continue;
          CAPTURE(pipeline_kind_name(kind));
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(v);
          const std::vector<StageTimes> stages(static_cast<std::size_t>(p), times);
          const PipelineTimeline timeline = simulate_pipeline(shape, stages);
          CHECK(agrees(timeline.makespan, pipeline_bubble(shape, times).makespan, 1e-12));
          CHECK(agrees(timeline.makespan, pipeline_makespan(shape, stages), 1e-12));
          const std::vector<InFlight> peaks = peak_in_flight(shape);
          for (int i = 0; i < p; ++i) {
            CHECK(timeline.peak_activations[i] == peaks[i].activations);
            CHECK(agrees(timeline.busy[i], m * times.sum(), 1e-12));
          }
        }
      }
    }
  }
}

TEST_CASE("the makespan of gpipe is exact for any stages, that of 1f1b while stages differ by less than half") {
  const CounterRandom random(7);
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const int p = 1 + static_cast<int>(random.below(9, draw)), m = p + static_cast<int>(random.below(30, draw + 1000));
    const std::vector<StageTimes> wild = random_stages(p, 2.0, random, draw + 5000);
    const std::vector<StageTimes> mild = random_stages(p, 0.45, random, draw + 6000);
    const PipelineShape gpipe = {PipelineKind::GPipe, p, m};
    const PipelineShape one_by_one = {PipelineKind::OneForwardOneBackward, p, m};
    CHECK(agrees(pipeline_makespan(gpipe, wild), simulate_pipeline(gpipe, wild).makespan, 1e-12));
    CHECK(agrees(pipeline_makespan(one_by_one, mild), simulate_pipeline(one_by_one, mild).makespan, 1e-12));
    const double truth = simulate_pipeline(one_by_one, wild).makespan;
    CHECK(pipeline_makespan(one_by_one, wild) <= truth * (1 + 1e-12));
    CHECK(pipeline_makespan(one_by_one, wild) >= truth * 0.95);
  }
}

TEST_CASE("the makespan of interleaved stages is near its simulation") {
  const CounterRandom random(8);
  double worst = 0;
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const int p = 1 + static_cast<int>(random.below(8, draw)), v = 2 + static_cast<int>(random.below(3, draw + 2000));
    const int m = p * (1 + static_cast<int>(random.below(6, draw + 1000)));
    const std::vector<StageTimes> stages = random_stages(p, 0.45, random, draw + 6000);
    const PipelineShape shape = {PipelineKind::Interleaved, p, m, v};
    const double truth = simulate_pipeline(shape, stages).makespan;
    worst = std::max(worst, std::abs(pipeline_makespan(shape, stages) / truth - 1));
  }
  CHECK(worst < 0.08);
}

TEST_CASE("a pipeline takes at least its slowest stage's work, whatever the schedule") {
  const CounterRandom random(9);
  for (const std::string name :
       {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe", "dualpipev"}) {
    CAPTURE(name);
    const PipelineShape shape = {pipeline_kind_from_name(name), 4, 16, name == "interleaved" || name[1] == '-' ? 2 : 1};
    CHECK(pipeline_kind_name(shape.kind) == name);
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      const std::vector<StageTimes> stages = random_stages(4, 1.0, random, draw);
      double slowest = 0;
      for (const StageTimes& stage : stages) slowest = std::max(slowest, stage.sum());
      CHECK(pipeline_makespan(shape, stages) >= 16 * slowest);
    }
  }
}

TEST_CASE("shapes that a schedule cannot run are told, and not simulated") {
  const auto problem = [](PipelineKind kind, int p, int m, int v = 1) {
    return shape_problem({kind, p, m, v}).value_or("");
  };
  CHECK(problem(PipelineKind::Interleaved, 4, 6, 2) ==
        "interleaved needs micro-batches in multiples of its 4 stages, not 6");
  CHECK(problem(PipelineKind::Interleaved, 4, 8, 1) == "interleaved needs 2 chunks per device or more, not 1");
  CHECK(problem(PipelineKind::OneForwardOneBackward, 4, 8, 2) == "1f1b has 1 chunk per device, not 2");
  CHECK(problem(PipelineKind::ZeroBubbleV, 4, 8) == "zb-v has 2 chunks per device, not 1");
  CHECK(problem(PipelineKind::ZeroBubbleH2, 4, 6) == "zb-h2 needs 7 micro-batches for its 4 stages, not 6");
  CHECK(problem(PipelineKind::DualPipe, 4, 6) == "dualpipe needs 8 micro-batches for its 4 stages, not 6");
  CHECK(problem(PipelineKind::DualPipe, 4, 9) == "dualpipe needs an even number of micro-batches, not 9");
  CHECK(problem(PipelineKind::DualPipe, 3, 8) == "dualpipe needs an even number of stages, not 3");
  CHECK(problem(PipelineKind::DualPipe, 4, 8).empty());
  const std::vector<StageTimes> stages(4, StageTimes{1, 1, 1});
  CHECK_THROWS_AS(simulate_pipeline({PipelineKind::Interleaved, 4, 6, 2}, stages), UsageError);
  CHECK_THROWS_AS(simulate_pipeline({PipelineKind::ZeroBubbleH1, 4, 8}, stages), UsageError);
  CHECK_THROWS_AS(simulate_pipeline({PipelineKind::GPipe, 3, 8}, stages), InternalError);
  CHECK_THROWS_AS(pipeline_makespan({PipelineKind::GPipe, 3, 8}, stages), InternalError);
  CHECK_THROWS_AS(pipeline_bubble({PipelineKind::GPipe, 0, 8}, stages[0]), InternalError);
  CHECK_THROWS_AS(pipeline_kind_from_name("1f1c"), UsageError);
}
