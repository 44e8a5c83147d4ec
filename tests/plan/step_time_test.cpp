// What the time model prices against what the ledger's formulas say of the same step.
#include "octavo/plan/step_time.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/traffic.h"

using namespace octavo;

namespace {

ModelSpec model() {
  return read_model_spec("tests/data/configs/llama-3-8b.json");
}

constexpr TrainingJob kJob = {.sequence_length = 4096, .batch = 16, .compute = ElementType::BFloat16};

StepTime step_of(const StepPlan& plan, const std::string& cluster = "H100x8") {
  TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  rules.gradient_bytes = 4;
  return TimeModel(model(), kJob, read_cluster(cluster), rules).step(plan);
}

/// Bytes that a rank sends along an axis in a step, in the mean.
double ledger_bytes(const StepPlan& plan, Axis axis) {
  const ParamTable table(model());
  StepShape shape{.batch = kJob.batch,
                  .sequence_length = kJob.sequence_length,
                  .micro_batch = plan.micro_batch,
                  .compute = kJob.compute};
  shape.recomputes = plan.stash.kind == StashPolicy::Kind::Recompute;
  const int world = plan.layout.world_size();
  double sum = 0;
  for (int rank = 0; rank < world; ++rank) {
    for (const LedgerRow& row : predict_step_traffic(table, plan.layout, shape, rank)) {
      if (row.group == axis_name(axis)) sum += static_cast<double>(row.logical);
    }
  }
  return sum / world;
}

}  // namespace

TEST_CASE("the bytes of an axis are those of the ledger") {
  for (const std::string layout :
       {"data=8", "data=8:zero1", "tensor=8", "tensor=8:scatter", "data=2:zero1 tensor=4:scatter", "fold=8:weights",
        "fold=8:activations", "fold=4:auto", "data=2:zero1 fold=4:weights", "fold=2:weights tensor=4",
        "data=4 fold=2:activations"}) {
    for (const char* stash : {"keep", "recompute"}) {
      const StepPlan plan{parse_layout(layout), 1, parse_stash_policy(stash)};
      const StepTime step = step_of(plan);
      for (const Axis axis : kAllAxes) {
        CAPTURE(layout);
        CAPTURE(stash);
        CAPTURE(axis_name(axis));
        const double booked = ledger_bytes(plan, axis), priced = step.axis(axis).bytes;
        CHECK(priced == doctest::Approx(booked).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("the bytes of an axis are those of the ledger where tensor replicates or pads") {
  for (const std::string layout :
       {"data=2:zero1 tensor=16:replicate", "data=2 tensor=3:replicate", "data=2:zero1 tensor=16:scatter:replicate",
        "data=2:zero1 tensor=16:pad", "data=4 tensor=6:scatter:replicate"}) {
    const StepPlan plan{parse_layout(layout), 1, {}};
    const StepTime step = step_of(plan, "H100x8x4");
    for (const Axis axis : {Axis::Data, Axis::Tensor}) {
      CAPTURE(layout);
      CAPTURE(axis_name(axis));
      CHECK(step.axis(axis).bytes == doctest::Approx(ledger_bytes(plan, axis)).epsilon(0.01));
    }
  }
}

TEST_CASE("the parts of a step add up, and utilisation is FLOPs over time and peak") {
  for (const std::string layout :
       {"data=8:zero3", "pipeline=2 data=2 tensor=2", "fold=8", "sequence=4:ulysses tensor=2"}) {
    CAPTURE(layout);
    const StepTime step = step_of({parse_layout(layout), 1, {}});
    CHECK(step.total == doctest::Approx(step.computing() + step.host + step.bubble + step.exposed()));
    CHECK(step.mfu == doctest::Approx(step.model / (step.total * 8 * 989e12)));
    CHECK(step.tokens_per_second == doctest::Approx(16 * 4096 / step.total));
    CHECK(step.mfu > 0);
    CHECK(step.hfu >= step.mfu);
    CHECK(step.hfu < 1);
  }
}

TEST_CASE("more recomputation never makes a step faster, and counts as hardware FLOPs") {
  for (const std::string layout : {"data=8:zero3", "data=2:zero1 tensor=4:scatter", "fold=8", "pipeline=2 tensor=4"}) {
    CAPTURE(layout);
    Seconds last = 0;
    Flops executed = 0;
    for (const char* stash : {"keep", "attention,qkv,gate_up", "attention,qkv", "attention", "recompute"}) {
      CAPTURE(stash);
      const StepTime step = step_of({parse_layout(layout), 1, parse_stash_policy(stash)});
      CHECK(step.total >= last);
      CHECK(step.executed >= executed);
      last = step.total;
      executed = step.executed;
    }
    CHECK(executed > step_of({parse_layout(layout), 1, {}}).executed);
  }
}

TEST_CASE("a faster link, memory or accelerator never makes a step slower") {
  for (const std::string layout : {"data=16:zero3", "data=2:zero1 fold=8", "pipeline=2 tensor=8", "sequence=16"}) {
    CAPTURE(layout);
    const StepPlan plan{parse_layout(layout), 1, {}};
    const TimeRules rules = find_time_rules("megatron-core", "H100").rules;
    const Cluster slow = read_cluster("H100x8x2");
    const Seconds before = TimeModel(model(), kJob, slow, rules).step(plan).total;
    for (const char* name :
         {"bf16_flops", "memory_bandwidth", "fabric_bandwidth", "fabric_pair_bandwidth", "nic_bits"}) {
      CAPTURE(name);
      Cluster fast = slow;
      int changed = 0;
      for (const HardwareField& field : hardware_fields()) {
        if (field.name != name) continue;
        auto constant = field.get(fast.accelerator);
        constant->value *= 1.5;
        field.set(fast.accelerator, constant);
        ++changed;
      }
      CHECK(changed == 1);
      CHECK(TimeModel(model(), kJob, fast, rules).step(plan).total <= before * (1 + 1e-12));
    }
  }
}

TEST_CASE("what tensor replicates every rank computes, and what it sends of gradients is that of what it holds") {
  const ModelSpec qwen = read_model_spec("tests/data/configs/qwen3-8b.json");
  const TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  const TrainingJob job{.sequence_length = 8192, .batch = 16, .compute = ElementType::BFloat16};
  const auto step = [&](const char* cluster, const char* layout) {
    return TimeModel(qwen, job, read_cluster(cluster), rules).step({parse_layout(layout), 1, {}});
  };
  // Nothing of it divides by 5: each rank does the work of the one of data=8.
  const StepTime alone = step("H100x8", "data=8:zero1"), copied = step("H100x8x5", "data=8:zero1 tensor=5:replicate");
  CHECK(copied.matmul == doctest::Approx(alone.matmul));
  CHECK(copied.head == doctest::Approx(alone.head));
  CHECK(copied.optimizer == doctest::Approx(alone.optimizer));
  CHECK(copied.axis(Axis::Data).bytes == doctest::Approx(alone.axis(Axis::Data).bytes));
  // 8 KV heads over 16: the heads' weights twice, all else divided.
  const StepTime even = step("H100x8x2", "tensor=8"), twice = step("H100x8x2", "tensor=16:replicate");
  CHECK(twice.matmul < 0.6 * even.matmul);
  CHECK(twice.matmul > 0.5 * even.matmul);
}

TEST_CASE("under ZeRO 3 each layer travels by itself and pays its latency") {
  Cluster cluster = read_cluster("H100x8x16");
  FabricTiming& timing = cluster.accelerator.timing;
  const TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  const auto data_time = [&](const char* layout) {
    const AxisTime axis = TimeModel(model(), {4096, 128, ElementType::BFloat16}, cluster, rules)
                              .step({parse_layout(layout), 1, {}})
                              .axis(Axis::Data);
    return axis.hidden + axis.exposed;
  };
  const Seconds zero1 = data_time("data=128:zero1"), zero3 = data_time("data=128:zero3");
  timing.call_latency.value += 1e-3;
  // 32 layers and the vocabulary: gathered twice, gradients once; zero1 sends two messages in all.
  CHECK(data_time("data=128:zero3") - zero3 == doctest::Approx(3 * 33 * 1e-3));
  CHECK(data_time("data=128:zero1") - zero1 == doctest::Approx(2 * 1e-3));
}

TEST_CASE("communication of all axes together hides no more than there is computing to hide it") {
  TimeRules rules = find_time_rules("megatron-core", "H100").rules;
  for (const bool shows_nothing : {false, true}) {
    if (shows_nothing) {
      set_time_constants(rules, "tensor_exposed=0,sequence_exposed=0,pipeline_exposed=0,data_exposed=0,overlap=1");
    }
    for (const double bits : {4e11, 4e10, 4e9}) {
      Cluster cluster = read_cluster("H100x8x8");
      cluster.accelerator.network.nic_bits.value = bits;
      for (const char* layout : {"data=64:zero3", "data=64", "data=8:zero3 tensor=8:scatter", "tensor=8 data=8:zero3",
                                 "sequence=64:gather data=1:zero3", "sequence=8:ring fold=8:weights", "fold=64:weights",
                                 "fold=16:activations data=4:zero3", "pipeline=4 sequence=8:ulysses tensor=2",
                                 "pipeline=8:zb data=8:zero1"}) {
        CAPTURE(layout);
        CAPTURE(bits);
        const TrainingJob job{.sequence_length = 65536, .batch = 64, .compute = ElementType::BFloat16};
        const StepTime step = TimeModel(model(), job, cluster, rules).step({parse_layout(layout), 1, {}});
        Seconds hidden = 0;
        for (const AxisTime& axis : step.axes) {
          CHECK(axis.hidden >= 0);
          CHECK(axis.exposed >= 0);
          CHECK(axis.hidden + axis.exposed <= step.total);
          hidden += axis.hidden;
        }
        CHECK(hidden + step.exposed() <= step.total);
      }
    }
  }
}

TEST_CASE("a micro-batch below 1 and an accelerator without the precision are usage errors") {
  CHECK_THROWS_AS(step_of({parse_layout("data=8"), 0, {}}), UsageError);
  const TrainingJob job{.sequence_length = 16, .batch = 1, .compute = ElementType::Float64};
  CHECK_THROWS_AS(TimeModel(model(), job, read_cluster("H100x8"), find_time_rules("nanotron", "H100").rules),
                  UsageError);
}
