// What folded ranks keep in memory, against one rank's and against the size of a shard.
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/dryrun/dry_run.h"

using namespace octavo;

namespace {

constexpr std::int64_t kLength = 1920;

ModelSpec model_of(std::int64_t kv_heads, std::int64_t features, std::int64_t vocabulary) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 256;
  model.vocab_size = vocabulary;
  for (int layer = 0; layer < 4; ++layer) {
    model.layers.push_back({AttentionSpec{8, kv_heads, 32, false, {}}, GatedMlpSpec{features}});
  }
  return model;
}

DryRun run(const ModelSpec& model, const std::string& layout, const std::string& stash, int rank = 0) {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.trainer.stash = parse_stash_policy(stash);
  options.sequence_length = kLength;
  return dry_run(model, options, rank);
}

/// The most that an evaluation has in memory of what gloo moves.
Bytes forward_communication(const ModelSpec& model, const std::string& text, int rank) {
  const at::NoGradGuard no_grad;
  const AccountHandle account = MemoryAccount::create();
  const ChargeTo charge(account.get());
  const Layout layout = parse_layout(text);
  const auto world = make_record_world(rank, layout.world_size(), Backend::Gloo);
  const ParamTable table(model);
  ParamStore store(table, place(table, layout, rank), ElementType::Float32, at::kMeta, /*for_training=*/false);
  Trainer trainer(model, layout, *world, store, {});
  constexpr std::int64_t kLong = 4800;  // tokens, more than vocabulary rows: the embedding moves its rows too
  (void)trainer.evaluate(RandomBatches({model.vocab_size, kLong, 1, 0}), 1);
  return account->highest()[static_cast<int>(MemoryCategory::Communication)];
}

Bytes highest(const DryRun& run, MemoryCategory category) {
  return run.highest[static_cast<int>(category)];
}

}  // namespace

TEST_CASE("weights, gradients, optimizer state and saved activations each fall as 1/D under fold") {
  const ModelSpec model = model_of(4, 1024, 1024);
  for (const char* stash : {"keep", "recompute", "attention"}) {
    const DryRun one = run(model, "", stash);
    for (const int degree : {2, 3, 4, 5, 8}) {
      const DryRun folded = run(model, cat("fold=", degree, ":weights"), stash);
      for (const MemoryCategory category : {MemoryCategory::Weights, MemoryCategory::Gradients,
                                            MemoryCategory::Optimizer, MemoryCategory::Activations}) {
        CAPTURE(stash);
        CAPTURE(degree);
        CAPTURE(memory_category_name(category));
        const double share =
            static_cast<double>(highest(folded, category)) * degree / static_cast<double>(highest(one, category));
        CHECK(share <= 1.03);
        // Under `attention` what forward computes beside it counts as activations too, and is less per token here,
        // since only a shard's features exist at once.
        if (std::string(stash) != "attention") CHECK(share >= 0.97);
      }
    }
  }
}

TEST_CASE("foreign shards in memory are two of weights and two of gradients at most, whatever D divides") {
  for (const auto& [kv_heads, features, vocabulary] :
       {std::array<std::int64_t, 3>{4, 1024, 1024}, {2, 1000, 1001}, {8, 512, 4096}}) {
    const ModelSpec model = model_of(kv_heads, features, vocabulary);
    for (const int degree : {2, 3, 4, 5, 8}) {
      // The largest step: a unit, or 1/D of the units rounded up. A shard is what its halves read
      // (layout/block_layout.h), and while one block's last half is in use, it is the next block's first half that
      // travels.
      const auto units = [&](std::int64_t count) { return std::max<std::int64_t>(1, (count + degree - 1) / degree); };
      const std::int64_t head_rows = 8 / kv_heads * 32, width = 256;
      const std::int64_t project = std::max(units(kv_heads) * (head_rows + 2 * 32), 2 * units(features)) * width;
      const std::int64_t mix = std::max({units(kv_heads) * head_rows, units(features), units(vocabulary)}) * width;
      const std::int64_t shard = project + mix;
      for (const char* stash : {"keep", "recompute", "attention"}) {
        for (int rank = 0; rank < degree; ++rank) {
          CAPTURE(kv_heads);
          CAPTURE(degree);
          CAPTURE(stash);
          CAPTURE(rank);
          const std::string layout = cat("fold=", degree, ":weights");
          // Where peers' weights are read in place there are gradients alone, but for units that several ranks store.
          const Bytes in_place = highest(run(model, layout, stash, rank), MemoryCategory::Communication);
          CHECK(in_place <= (kv_heads % degree == 0 ? 2 : 4) * shard * 4);
          CHECK(in_place > 0);
          // Where they move, forward has them alone.
          const Bytes moved = forward_communication(model, layout, rank);
          CHECK(moved <= 2 * shard * 4);
          CHECK(moved > 3 * shard);
        }
      }
    }
  }
}

TEST_CASE("buckets of KV heads lower what gathered keys and values take, for as many bytes in more gathers") {
  // One layer whose peak is its attention's: a small MLP, many KV heads, under recompute.
  ModelSpec model = model_of(8, 64, 64);
  const DryRun whole = run(model, "fold=2:weights", "recompute"),
               halves = run(model, "fold=2:weights:buckets-2", "recompute"),
               heads = run(model, "fold=2:weights:buckets-4", "recompute");
  CHECK(halves.peak.total < whole.peak.total);
  CHECK(heads.peak.total < halves.peak.total);
  const auto gathers = [](const DryRun& run) {
    LedgerRow sum{.group = "", .purpose = Purpose::KeysValues, .kind = Collective::AllGather};
    for (const LedgerRow& row : run.ledger) {
      if (row.purpose != sum.purpose || row.kind != sum.kind) continue;
      sum.count += row.count;
      sum.logical += row.logical;
    }
    return sum;
  };
  CHECK(gathers(heads).count == 4 * gathers(whole).count);
  CHECK(gathers(heads).logical == gathers(whole).logical);
}
