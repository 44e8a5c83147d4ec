// What is predicted is what runs: the plan's rows against those that the engine books, of every rank.
#include "octavo/plan/traffic.h"

#include <doctest/doctest.h>

#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/plan/alike.h"
#include "octavo/train/rank_session.h"

using namespace octavo;

namespace {

/// Odd sizes: 6 query heads, 3 KV heads, 50 features, 61 vocabulary rows.
ModelSpec odd_model(bool qk_norm, bool tied) {
  ModelSpec model;
  model.model_type = qk_norm ? "qwen3" : "llama";
  model.hidden_size = 24;
  model.vocab_size = 61;
  model.tied_embeddings = tied;
  for (int layer = 0; layer < 3; ++layer) {
    model.layers.push_back({AttentionSpec{6, 3, 4, qk_norm, {}}, GatedMlpSpec{50}});
  }
  return model;
}

DryRunOptions options_of(const std::string& layout, const StepShape& shape, const std::string& stash = "keep") {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.compute = shape.compute;
  options.trainer.micro_batch = shape.micro_batch;
  options.trainer.stash = parse_stash_policy(stash);
  options.batch = shape.batch;
  options.sequence_length = shape.sequence_length;
  return options;
}

void check_every_rank(const ModelSpec& model, const std::string& layout, const StepShape& shape,
                      const std::string& stash = "keep") {
  DryRunOptions options = options_of(layout, shape, stash);
  StepShape expected = shape;
  expected.recomputes = options.trainer.stash.kind == StashPolicy::Kind::Recompute;
  expected.reads_in_place = shape.shares_memory;
  options.backend = shape.shares_memory ? Backend::Threads : Backend::Gloo;
  const ParamTable table(model);
  for (int rank = 0; rank < options.layout.world_size(); ++rank) {
    INFO("layout " << layout << ", stash " << stash << ", rank " << rank);
    const std::vector<LedgerRow> booked = dry_run(model, options, rank).ledger;
    const auto differences = traffic_differences(predict_step_traffic(table, options.layout, expected, rank), booked);
    CHECK(join(differences, "\n") == "");
    CHECK(booked.empty() == (options.layout.world_size() == 1));
  }
}

// Seven sequences of 13 tokens, two at once.
constexpr StepShape kShape = {.batch = 7, .sequence_length = 13, .micro_batch = 2, .compute = ElementType::Float32};

const std::vector<std::string> kLayouts = {
    "",
    "data=2",
    "data=3:zero1",
    "data=9:zero1",
    "fold=2:weights",
    "fold=2:weights:buckets-2",
    "fold=3:weights:contiguous",
    "fold=5:weights",
    "data=2:zero1 fold=2:weights",
    "fold=2:weights tensor=3:scatter:pad",
    "fold=2:activations",
    "fold=3:activations:contiguous",
    "fold=5:activations",
    "fold=8:activations",
    "data=2:zero1 fold=2:activations",
    "fold=2:activations tensor=3:scatter:pad",
    "fold=3:activations tensor=4:replicate",
    "fold=2",
    "fold=3",
    "fold=8",
    "data=2 fold=2:contiguous",
    "fold=2 tensor=3:scatter:pad",
    "fold=4 tensor=2:replicate",
    "tensor=3:pad",
    "tensor=3:scatter:pad",
    "tensor=4:pad",
    "tensor=4:replicate",
    "tensor=6:scatter:replicate",
    "tensor=2:replicate:scatter",
    "data=2 tensor=3:pad",
    "data=2:zero1 tensor=3:scatter:pad",
    "data=2:zero1 tensor=4:replicate:scatter",
    "data=9:zero1 tensor=6:replicate",
};

}  // namespace

TEST_CASE("the predicted rows of a step are those that every rank books") {
  for (const std::string& layout : kLayouts) {
    check_every_rank(odd_model(true, false), layout, kShape);
    check_every_rank(odd_model(false, true), layout, kShape, "recompute");
  }
}

TEST_CASE("they are so where ranks do not share memory, round the ring and straight from the owners") {
  StepShape shape = kShape;
  shape.shares_memory = false;
  for (const char* layout :
       {"fold=2:weights", "fold=3:weights", "fold=4:weights:direct", "fold=5:weights", "fold=8:weights",
        "fold=8:weights:direct:contiguous", "data=2:zero1 fold=3:weights", "fold=4:weights tensor=3:scatter:pad"}) {
    for (const char* stash : {"keep", "recompute", "attention"}) {
      check_every_rank(odd_model(true, false), layout, shape, stash);
      check_every_rank(odd_model(false, true), layout, shape, stash);
    }
  }
}

TEST_CASE("they are so where a block has fewer units than ranks") {
  ModelSpec model = odd_model(false, false);
  for (LayerSpec& layer : model.layers) layer.ffn = GatedMlpSpec{3};
  for (const bool shares_memory : {true, false}) {
    StepShape shape = kShape;
    shape.shares_memory = shares_memory;
    check_every_rank(model, "fold=5:weights", shape);
  }
}

TEST_CASE("they are so in every compute type, and under every stash policy") {
  for (const ElementType compute : {ElementType::BFloat16, ElementType::Float64}) {
    StepShape shape = kShape;
    shape.compute = compute;
    check_every_rank(odd_model(true, false), "data=2:zero1 tensor=4:replicate:scatter", shape);
    check_every_rank(odd_model(true, false), "data=2 tensor=3:pad", shape, "attention");
    for (const char* layout : {"fold=2:activations", "fold=5:activations tensor=2:pad", "fold=2", "fold=8"}) {
      for (const char* stash : {"keep", "recompute", "attention", "qkv,gate_up"}) {
        check_every_rank(odd_model(true, false), layout, shape, stash);
      }
    }
  }
}

TEST_CASE("they are so for a head that takes its tokens in chunks and gradients in several buckets") {
  ModelSpec model = odd_model(true, false);
  model.vocab_size = 200'000;
  StepShape shape = kShape;
  shape.sequence_length = 400;
  shape.batch = shape.micro_batch = 2;
  // Of 200,001 rows the ranks of a fold axis have different numbers, and must take the same chunks.
  model.vocab_size = 200'001;
  for (const char* layout : {"data=2:zero1", "tensor=2:replicate", "tensor=2:scatter:pad", "fold=2:activations",
                             "fold=2:activations tensor=2:pad", "fold=2:weights tensor=2:pad"}) {
    check_every_rank(model, layout, shape);
  }
}

TEST_CASE("the predicted rows of an evaluation are those that it books") {
  const ModelSpec model = odd_model(true, false);
  const ParamTable table(model);
  constexpr std::int64_t kBatches = 3;
  const RandomBatches batches({model.vocab_size, kShape.sequence_length, kShape.batch, 0});
  StepShape shape = kShape;
  shape.reads_in_place = true;
  for (const char* text : {"data=2", "tensor=3:pad", "tensor=2:scatter:replicate", "data=2:zero1 tensor=2:pad",
                           "fold=2:weights", "fold=3:weights", "fold=2:weights tensor=2:pad",
                           "fold=4:activations tensor=2:pad", "fold=5", "data=2 fold=2"}) {
    const DryRunOptions options = options_of(text, kShape);
    std::vector<std::vector<LedgerRow>> booked(options.layout.world_size());
    run_session({.num_ranks = options.layout.world_size()}, [&](RankSession& session) {
      const int rank = session.world.rank();
      ParamStore store(table, place(table, options.layout, rank), kShape.compute, at::kCPU, /*for_training=*/false);
      Trainer trainer(model, options.layout, session.world, store, options.trainer);
      session.world.ledger().reset();
      (void)trainer.evaluate(batches, kBatches);
      booked[rank] = session.world.ledger().rows();
    });
    for (int rank = 0; rank < options.layout.world_size(); ++rank) {
      INFO("layout " << text << ", rank " << rank);
      const auto predicted = predict_evaluation_traffic(table, options.layout, shape, rank, kBatches);
      CHECK(join(traffic_differences(predicted, booked[rank]), "\n") == "");
    }
  }
}

TEST_CASE("ranks that are said to be alike have the same step") {
  const ModelSpec model = odd_model(true, false);
  const ParamTable table(model);
  for (const char* text :
       {"data=3:zero1", "tensor=4:pad", "tensor=6:scatter:replicate", "data=3:zero1 tensor=4:replicate:scatter",
        "fold=4:activations", "fold=8:activations", "fold=8", "data=2 fold=5:activations tensor=2:pad",
        "fold=4:weights", "fold=8:weights", "data=2:zero1 fold=5:weights:direct"}) {
    DryRunOptions options = options_of(text, kShape);
    options.backend = Backend::Gloo;
    for (const std::vector<int>& alike : alike_ranks(table, options.layout, kShape.batch)) {
      const DryRun first = dry_run(model, options, alike.front());
      for (const int rank : alike) {
        INFO("layout " << text << ", ranks " << alike.front() << " and " << rank);
        const DryRun run = dry_run(model, options, rank);
        CHECK((run.peak.by_category == first.peak.by_category));
        CHECK((run.state.by_category == first.state.by_category));
        CHECK(run.flops.total() == first.flops.total());
        CHECK(join(traffic_differences(first.ledger, run.ledger), "\n") == "");
      }
    }
  }
}
