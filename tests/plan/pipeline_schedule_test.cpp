#include "octavo/plan/pipeline_schedule.h"

#include <algorithm>

#include "golden_cases.h"
#include "octavo/base/random.h"
#include "octavo/plan/pipeline_simulation.h"

using namespace octavo;

namespace {

bool is_simulated(PipelineKind kind) {
  return kind == PipelineKind::GPipe || kind == PipelineKind::OneForwardOneBackward ||
         kind == PipelineKind::Interleaved;
}

StageTimes times_of(const nlohmann::json& input) {
  if (!input.contains("t_full_backward")) return {input.at("t_f"), input.at("t_b"), input.at("t_w")};
  const double weight = input.at("t_w");
  return {.forward = input.at("t_f"),
          .backward_input = input.at("t_full_backward").get<double>() - weight,
          .backward_weight = weight,
          .overlapped = input.at("t_f_and_b_overlapped").get<double>()};
}

PipelineShape shape_of(const nlohmann::json& input) {
  std::string name = input.at("schedule");
  if (name == "interleaved 1f1b") name = "interleaved";
  const char* stages = input.contains("pipeline_stages") ? "pipeline_stages" : "p";
  return {pipeline_kind_from_name(name), input.at(stages), input.at("m"), input.value("v", 1)};
}

/// Most activations of a device in units of a whole stage, over the stages of 1f1b's first device.
double peak_over_1f1b(const PipelineShape& shape) {
  double most = 0;
  for (const InFlight& peak : peak_in_flight(shape)) {
    most = std::max(most, (peak.activations + peak.weight_inputs) / shape.num_chunks);
  }
  return most;
}

std::vector<StageTimes> stages_of(const nlohmann::json& input) {
  REQUIRE(input.at("backward") == "2x forward");
  std::vector<StageTimes> stages;
  for (const double forward : input.at("forward_time_per_stage").get<std::vector<double>>()) {
    stages.push_back({forward, forward, forward});
  }
  return stages;
}

void check_bubble_case(const GoldenCase& one) {
  const PipelineShape shape = shape_of(one.input);
  const PipelineBubble bubble = pipeline_bubble(shape, times_of(one.input));
  const std::vector<InFlight> peaks = peak_in_flight(shape);
  const auto near = [&](double actual, const nlohmann::json& expected) {
    return agrees(actual, expected.get<double>(), std::max(one.tolerance, 1e-11));
  };
  for (const auto& item : one.expect.items()) {
    const std::string& key = item.key();
    const nlohmann::json& value = item.value();
    CAPTURE(key);
    if (key == "bubble_time") {
      CHECK(near(bubble.time, value));
    } else if (key == "over_ideal") {
      CHECK(near(bubble.over_ideal, value));
    } else if (key == "of_total" || key == "published_bubble_rate_of_total") {
      CHECK(near(bubble.of_total, value));
    } else if (key == "makespan") {
      CHECK(near(bubble.makespan, value));
      CHECK(near(simulate_pipeline(shape, std::vector(peaks.size(), times_of(one.input))).makespan, value));
    } else if (key == "simulated") {
      CHECK(value.get<bool>() == is_simulated(shape.kind));
    } else if (key == "peak_in_flight_micro_batches" && value.is_number()) {
      for (const InFlight& peak : peaks) CHECK(near(peak.activations, value));
    } else if (key == "peak_in_flight_micro_batches" || key == "peak_in_flight_chunks" ||
               key == "peak_in_flight_micro_batch_equivalents") {
      const double chunks = key == "peak_in_flight_micro_batch_equivalents" ? shape.num_chunks : 1;
      const auto timeline = simulate_pipeline(shape, std::vector(peaks.size(), times_of(one.input)));
      REQUIRE(value.size() == peaks.size());
      for (std::size_t i = 0; i < peaks.size(); ++i) {
        CHECK(near(peaks[i].activations / chunks, value[i]));
        CHECK(near(timeline.peak_activations[i] / chunks, value[i]));
      }
    } else if (key == "peak_per_stage_MB_plus_MW") {
      REQUIRE(value.size() == peaks.size());
      for (std::size_t i = 0; i < peaks.size(); ++i) {
        CHECK(near(peaks[i].activations, value[i][0]));
        CHECK(near(peaks[i].weight_inputs, value[i][1]));
      }
    } else if (key == "peak_activation_in_1f1b_units_max") {
      CHECK(near(peak_over_1f1b(shape), value));
    } else if (key == "activation_over_1f1b") {
      CHECK(near(peak_over_1f1b(shape) / shape.num_stages, value));
    } else if (key == "enough_micro_batches") {
      CHECK(value.get<bool>() == !shape_problem(shape));
    } else if (key == "valid") {
      if (!value.is_null()) CHECK(value.get<bool>() == !shape_problem(shape));
    } else if (key == "p2p_volume_factor") {
      CHECK(border_factor(shape) == value.get<int>());
    } else if (key == "parameter_copies") {
      CHECK(parameter_copies(shape) == value.get<int>());
    } else if (key == "devices") {
      CHECK(num_devices(shape) == value.get<int>());
    } else {
      FAIL_CHECK("a key that nobody compares");
    }
  }
}

std::vector<StageTimes> random_stages(int count, double spread, const CounterRandom& random, std::uint64_t draw) {
  std::vector<StageTimes> stages;
  for (int i = 0; i < count; ++i) {
    const auto factor = [&](int which) { return 1 + spread * random.uniform(draw * 1000 + 3 * i + which); };
    stages.push_back({factor(0), factor(1), factor(2)});
  }
  return stages;
}

}  // namespace

TEST_CASE("bubbles and peaks of all schedules are the published and simulated ones") {
  for (const GoldenCase& one : golden_cases("pipeline_bubbles")) {
    if (one.id.starts_with("unequal_stages.")) continue;
    CAPTURE(one.id);
    check_bubble_case(one);
  }
}

TEST_CASE("unequal stages take what their simulation says, and the closed form too") {
  for (const GoldenCase& one : golden_cases("pipeline_bubbles", "unequal_stages.")) {
    CAPTURE(one.id);
    const std::vector<StageTimes> stages = stages_of(one.input);
    const PipelineShape shape = shape_of(one.input);
    const double makespan = simulate_pipeline(shape, stages).makespan;
    double sum = 0, slowest = 0;
    for (const StageTimes& stage : stages) {
      sum += stage.sum();
      slowest = std::max(slowest, stage.sum());
    }
    const double balanced = shape.num_micro_batches * sum / static_cast<double>(stages.size());
    CHECK(agrees(makespan, one.expect.at("makespan").get<double>(), one.tolerance));
    CHECK(agrees(pipeline_makespan(shape, stages), one.expect.at("makespan").get<double>(), one.tolerance));
    CHECK(agrees(shape.num_micro_batches * slowest, one.expect.at("lower_bound_slowest_stage").get<double>(), 1e-9));
    CHECK(agrees(makespan / balanced - 1, one.expect.at("loss_over_mean").get<double>(), 2e-9));
  }
}

TEST_CASE("activations in flight are those of the activation memory cases") {
  for (const GoldenCase& one : golden_cases("activation_memory", "inflight.")) {
    CAPTURE(one.id);
    const PipelineShape shape = shape_of(one.input);
    const std::vector<InFlight> peaks = peak_in_flight(shape);
    const char* key =
        one.expect.contains("peak_chunks_per_stage") ? "peak_chunks_per_stage" : "peak_micro_batches_per_stage";
    const auto expected = one.expect.at(key).get<std::vector<double>>();
    REQUIRE(peaks.size() == expected.size());
    for (std::size_t i = 0; i < peaks.size(); ++i) CHECK(peaks[i].activations == expected[i]);
    if (one.expect.contains("first_stage_factor_over_L")) {
      CHECK(agrees(peaks[0].activations / (shape.num_stages * shape.num_chunks),
                   one.expect.at("first_stage_factor_over_L").get<double>(), one.tolerance));
    }
  }
}

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
