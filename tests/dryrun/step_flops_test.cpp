// FLOPs that a step executes, against the model's own arithmetic: nothing is computed twice, whatever the layout.
#include <doctest/doctest.h>

#include "octavo/dataset/random_batches.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/spec/flops.h"
#include "octavo/train/rank_session.h"

using namespace octavo;

namespace {

constexpr std::int64_t kHidden = 32, kHeads = 8, kKvHeads = 4, kWidth = 4, kFeatures = 48, kVocabulary = 96,
                       kLayers = 2;
constexpr std::int64_t kBatch = 6, kLength = 20;

ModelSpec model() {
  ModelSpec spec;
  spec.model_type = "llama";
  spec.hidden_size = kHidden;
  spec.vocab_size = kVocabulary;
  for (int layer = 0; layer < kLayers; ++layer) {
    spec.layers.push_back({AttentionSpec{kHeads, kKvHeads, kWidth, false, {}}, GatedMlpSpec{kFeatures}});
  }
  return spec;
}

ExecutedFlops step_flops(const std::string& layout, const std::string& stash) {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.trainer.stash = parse_stash_policy(stash);
  options.trainer.micro_batch = 2;
  options.batch = kBatch;
  options.sequence_length = kLength;
  ExecutedFlops sum;
  for (int rank = 0; rank < options.layout.world_size(); ++rank) {
    const ExecutedFlops flops = dry_run(model(), options, rank).flops;
    sum.matmul += flops.matmul;
    sum.attention += flops.attention;
    sum.attention_masked += flops.attention_masked;
  }
  return sum;
}

constexpr double kTokens = kBatch * kLength;
constexpr double kPairs = kBatch * kLength * (kLength + 1) / 2;
constexpr double kAttentionProduct = 2.0 * kHeads * kWidth * kPairs * kLayers;  // one of them, in all layers

}  // namespace

TEST_CASE("a step that keeps everything executes three products per matrix and token, and seven per visible pair") {
  const ExecutedFlops flops = step_flops("", "keep");
  CHECK(flops.matmul == 3 * 2 * static_cast<double>(matmul_parameters(model())) * kTokens);
  CHECK(flops.attention == 7 * kAttentionProduct);
  // The model's own count has six products per pair: the scores are computed again in backward.
  const std::vector<std::int64_t> lengths(kBatch, kLength);
  CHECK(flops.matmul + flops.attention == training_flops(model(), lengths) + kAttentionProduct);
}

TEST_CASE("recomputing repeats what its block's backward reads: not the last product, nor what is kept by name") {
  const double qkv = 2.0 * kHidden * (kHeads + 2 * kKvHeads) * kWidth * kTokens * kLayers;
  const double gate_up = 2.0 * 2 * kHidden * kFeatures * kTokens * kLayers;
  const ExecutedFlops keep = step_flops("", "keep");
  CHECK(step_flops("", "recompute").matmul == keep.matmul + qkv + gate_up);
  CHECK(step_flops("", "recompute").attention == keep.attention + 2 * kAttentionProduct);
  CHECK(step_flops("", "attention").attention == keep.attention);
  CHECK(step_flops("", "attention,qkv").matmul == keep.matmul + gate_up);
}

TEST_CASE("ranks of a layout that divides execute together what one rank does") {
  for (const char* stash : {"keep", "recompute"}) {
    const ExecutedFlops one = step_flops("", stash);
    for (const char* layout :
         {"data=3", "data=4:zero1", "tensor=4", "tensor=2:scatter", "data=2:zero1 tensor=4:scatter"}) {
      CAPTURE(stash);
      CAPTURE(layout);
      const ExecutedFlops all = step_flops(layout, stash);
      CHECK(all.matmul == one.matmul);
      CHECK(all.attention == one.attention);
      CHECK(all.attention_masked == one.attention_masked);
    }
  }
  // Padded units are multiplied too: 96 rows over 5 ranks are 100, 48 features 50, 4 KV heads 5.
  CHECK(step_flops("tensor=5:pad", "keep").attention == step_flops("", "keep").attention * 5 / 4);
}

TEST_CASE("a real step executes what its meta run says") {
  for (const char* layout : {"", "data=2", "tensor=2:scatter"}) {
    DryRunOptions options;
    options.layout = parse_layout(layout);
    options.batch = kBatch;
    options.sequence_length = kLength;
    const ParamTable table(model());
    const RandomBatches batches({kVocabulary, kLength, kBatch, 0});
    std::vector<ExecutedFlops> executed(options.layout.world_size());
    run_session({.num_ranks = options.layout.world_size()}, [&](RankSession& session) {
      const int rank = session.world.rank();
      ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, true);
      Trainer trainer(model(), options.layout, session.world, store, options.trainer);
      session.memory.reset_flops();
      trainer.step(batches, 0);
      executed[rank] = session.memory.flops();
    });
    for (int rank = 0; rank < options.layout.world_size(); ++rank) {
      const ExecutedFlops dry = dry_run(model(), options, rank).flops;
      CHECK(executed[rank].matmul == dry.matmul);
      CHECK(executed[rank].attention == dry.attention);
      CHECK(executed[rank].attention_masked == dry.attention_masked);
    }
  }
}
