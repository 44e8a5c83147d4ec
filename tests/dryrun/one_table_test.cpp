// The engine's memory, `octavo layout` and the auditor count the shards of one table: the same slices, the same bytes.
// And what the planner says that axes send is what a dry run books.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "octavo/base/text.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/parallel/param_store.h"
#include "octavo/plan/audit_slices.h"
#include "octavo/plan/search.h"

using namespace octavo;

namespace {

ModelSpec small_model(const std::string& type, bool tied, std::int64_t kv_heads) {
  ModelSpec model;
  model.model_type = type;
  model.hidden_size = 24;
  model.vocab_size = 53;
  model.tied_embeddings = tied;
  for (int layer = 0; layer < 2; ++layer) {
    model.layers.push_back({AttentionSpec{8, kv_heads, 4, type == "qwen3", {}}, GatedMlpSpec{37}});
  }
  return model;
}

/// Elements of a parameter that a rank's memory holds.
std::int64_t elements_in(ParamStore& store, const Parameter& parameter) {
  std::vector<double> rows(static_cast<std::size_t>(parameter.elements()), 0.0);
  store.read_rows(store.weights(), parameter, 0, rows);
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0},
                         [](std::int64_t sum, double value) { return sum + (value == 1.0); });
}

}  // namespace

TEST_CASE("the engine holds of every parameter what the auditor says, on every rank of every layout") {
  for (const ModelSpec& model : {small_model("llama", false, 8), small_model("llama", true, 2),
                                 small_model("qwen3", true, 4), small_model("qwen3", false, 1)}) {
    const ParamTable table(model);
    for (const char* text :
         {"", "data=2:zero1", "tensor=2:replicate", "tensor=4:scatter:replicate", "tensor=3:pad", "fold=2",
          "fold=3:weights", "fold=5:activations", "data=2 fold=2", "fold=2 tensor=2:replicate"}) {
      const Layout layout = parse_layout(text);
      for (int rank = 0; rank < layout.world_size(); ++rank) {
        CAPTURE(model.model_type);
        CAPTURE(std::string(text));
        CAPTURE(rank);
        const Placement placement = place(table, layout, rank);
        ParamStore store(table, placement, ElementType::Float32, at::kCPU, true);
        store.load(
            [](const Parameter&, std::int64_t, std::span<double> rows) { std::fill(rows.begin(), rows.end(), 1.0); });
        std::int64_t sum = 0;
        for (const Parameter& parameter : table.parameters()) {
          CAPTURE(parameter.name);
          const std::int64_t audited = slice_of(table, placement, parameter).elements();
          CHECK(elements_in(store, parameter) == audited);
          sum += audited;
        }
        CHECK(stored_elements(table, layout, rank, model) == sum);
        const StateBytes shown = state_bytes(placement, ElementType::Float32);
        CHECK(store.weights().numel() * 4 == shown.weights);
        CHECK(store.gradients().numel() * 4 == shown.gradients);
        // What belongs to no parameter is alignment and units of zeros.
        CHECK(shown.weights >= audit_state(sum, parse_layout(""), ElementType::Float32).weights);
      }
    }
  }
}

TEST_CASE("what a plan says that axes send is what the dry run books") {
  const PlanRequest request{.model = read_model_spec("tests/data/configs/smollm2-135m.json"),
                            .job = {1024, 8, ElementType::BFloat16},
                            .cluster = read_cluster("H100x8"),
                            .rules = find_time_rules("megatron-core", "H100").rules,
                            .memory_limit = Bytes{1} << 40};
  for (const char* text : {"data=4", "data=4:zero1", "tensor=3", "tensor=3:scatter", "fold=4:activations",
                           "fold=3:weights", "data=2:zero1 fold=2:activations"}) {
    StepPlan plan{parse_layout(text), 1, parse_stash_policy("recompute")};
    const PricedPlan priced = price(request, plan);
    DryRunOptions options;
    options.layout = parse_runnable_layout(text);
    options.compute = request.job.compute;
    options.trainer.stash = plan.stash;
    options.trainer.micro_batch = plan.micro_batch;
    options.batch = request.job.batch;
    options.sequence_length = request.job.sequence_length;
    std::array<double, 6> booked{};
    Bytes peak = 0;
    const int world = plan.layout.world_size();
    for (int rank = 0; rank < world; ++rank) {
      options.backend = Backend::Threads;  // the planner's peak is of lent memory that is read where it lies
      peak = std::max(peak, dry_run(request.model, options, rank).peak.total);
      options.backend = Backend::Gloo;  // and its bytes are of memory that travels
      for (const LedgerRow& row : dry_run(request.model, options, rank).ledger) {
        for (const Axis axis : kAllAxes) {
          if (row.group == axis_name(axis)) booked[static_cast<int>(axis)] += static_cast<double>(row.logical) / world;
        }
      }
    }
    for (const Axis axis : kAllAxes) {
      CAPTURE(std::string(text));
      CAPTURE(axis_name(axis));
      CHECK(priced.time.axis(axis).bytes == doctest::Approx(booked[static_cast<int>(axis)]).epsilon(0.01));
    }
    CHECK(static_cast<double>(priced.memory.total()) == doctest::Approx(static_cast<double>(peak)).epsilon(0.03));
  }
}
