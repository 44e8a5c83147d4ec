#include "octavo/dryrun/dry_run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/proof/training_run.h"
#include "proof/small_models.h"

using namespace octavo;

namespace {

/// Shapes A and B of the design's measurements, with fewer layers.
ModelSpec shape(std::int64_t hidden, std::int64_t heads, std::int64_t features, int layers) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = hidden;
  model.vocab_size = 4096;
  for (int layer = 0; layer < layers; ++layer) {
    model.layers.push_back({AttentionSpec{heads, 4, 64, false, {}}, GatedMlpSpec{features}});
  }
  return model;
}

struct Peaks {
  std::vector<MemorySnapshot> measured, predicted;
  std::vector<std::vector<LedgerRow>> measured_ledgers, predicted_ledgers;
};

Peaks run_both(const ModelSpec& model, const DryRunOptions& options) {
  Peaks peaks;
  const int ranks = options.layout.world_size();
  peaks.measured.resize(ranks);
  peaks.measured_ledgers.resize(ranks);
  const ParamTable table(model);
  const RandomBatches batches({model.vocab_size, options.sequence_length, options.batch, 0});
  run_session({.num_ranks = ranks}, [&](RankSession& session) {
    const int rank = session.world.rank();
    ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, true);
    Trainer trainer(model, options.layout, session.world, store, options.trainer);
    session.memory.reset_peak();
    session.world.ledger().reset();
    trainer.step(batches, 0);
    peaks.measured[rank] = session.memory.peak();
    peaks.measured_ledgers[rank] = session.world.ledger().rows();
  });
  for (int rank = 0; rank < ranks; ++rank) {
    const DryRun dry = dry_run(model, options, rank);
    peaks.predicted.push_back(dry.peak);
    peaks.predicted_ledgers.push_back(dry.ledger);
  }
  return peaks;
}

void check_equal(const ModelSpec& model, const std::string& layout, const std::string& stash, ElementType compute,
                 std::int64_t batch, std::int64_t length) {
  DryRunOptions options;
  options.layout = parse_layout(layout);
  options.compute = compute;
  options.trainer.stash = parse_stash_policy(stash);
  options.batch = batch;
  options.sequence_length = length;
  const Peaks peaks = run_both(model, options);
  for (int rank = 0; rank < options.layout.world_size(); ++rank) {
    INFO("layout " << layout << ", stash " << stash << ", rank " << rank << "\nmeasured "
                   << peaks.measured[rank].to_string() << "\npredicted " << peaks.predicted[rank].to_string());
    const double measured = static_cast<double>(peaks.measured[rank].total);
    CHECK(std::abs(static_cast<double>(peaks.predicted[rank].total) - measured) <= 0.005 * measured);
    const auto &seen = peaks.measured_ledgers[rank], &expected = peaks.predicted_ledgers[rank];
    REQUIRE(seen.size() == expected.size());
    // In bfloat16 oneDNN's products take scratch of their own, 0.1% of this; else every category is equal to the byte.
    if (compute != ElementType::BFloat16) {
      CHECK((peaks.predicted[rank].by_category == peaks.measured[rank].by_category));
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      CHECK(seen[i].group == expected[i].group);
      CHECK(seen[i].purpose == expected[i].purpose);
      CHECK(seen[i].kind == expected[i].kind);
      CHECK(seen[i].count == expected[i].count);
      CHECK(seen[i].logical == expected[i].logical);
      CHECK(seen[i].copied == expected[i].copied);
    }
  }
}

}  // namespace

TEST_CASE("a meta run of a step has the peak and the ledger that the real step has") {
  const ModelSpec a = shape(512, 8, 2048, 2), b = shape(1024, 16, 4096, 1);
  for (const char* stash : {"keep", "recompute", "attention"}) {
    check_equal(a, "", stash, ElementType::Float32, 1, 512);
    check_equal(a, "data=2", stash, ElementType::Float32, 2, 256);
    check_equal(b, "data=2:zero1", stash, ElementType::BFloat16, 2, 256);
  }
}

TEST_CASE("tensor-parallel ranks have the peak and the ledger of their meta run, in every form") {
  const ModelSpec a = shape(512, 8, 2048, 2), b = shape(1024, 16, 4096, 1);
  for (const char* stash : {"keep", "recompute"}) {
    check_equal(a, "tensor=2", stash, ElementType::Float32, 1, 512);
    check_equal(a, "tensor=2:scatter", stash, ElementType::Float32, 1, 511);
    check_equal(b, "tensor=4:scatter", stash, ElementType::Float32, 1, 256);
    check_equal(b, "tensor=3:pad", stash, ElementType::Float32, 1, 256);
    check_equal(a, "tensor=8:replicate", stash, ElementType::Float32, 1, 128);
    check_equal(a, "data=2:zero1 tensor=2:scatter", stash, ElementType::BFloat16, 2, 128);
  }
}

TEST_CASE("folded ranks have the peak and the ledger of their meta run") {
  const ModelSpec a = shape(512, 8, 2048, 2), b = shape(1024, 16, 4096, 1);
  for (const char* stash : {"keep", "recompute", "attention"}) {
    check_equal(a, "fold=2:weights", stash, ElementType::Float32, 1, 511);
    check_equal(b, "fold=4:weights", stash, ElementType::Float32, 1, 256);
    check_equal(b, "fold=3:weights:contiguous", stash, ElementType::Float32, 1, 256);
    check_equal(a, "fold=5:weights:direct", stash, ElementType::Float32, 1, 129);
    check_equal(a, "data=2:zero1 fold=2:weights", stash, ElementType::BFloat16, 2, 128);
  }
}

TEST_CASE("ranks to which tokens come have the peak and the ledger of their meta run") {
  const ModelSpec a = shape(512, 8, 2048, 2), b = shape(1024, 16, 4096, 1);
  for (const char* stash : {"keep", "recompute", "attention"}) {
    check_equal(a, "fold=2:activations", stash, ElementType::Float32, 1, 511);
    check_equal(b, "fold=8:activations", stash, ElementType::Float32, 1, 128);
    check_equal(b, "fold=3:activations:contiguous", stash, ElementType::Float32, 1, 256);
    check_equal(a, "fold=2:activations tensor=2:scatter", stash, ElementType::Float32, 1, 255);
    check_equal(a, "fold=2", stash, ElementType::Float32, 1, 1024);
    check_equal(a, "data=2:zero1 fold=2:activations", stash, ElementType::BFloat16, 2, 128);
  }
}

TEST_CASE("an idle rank's meta run has its peak too") {
  check_equal(shape(512, 8, 2048, 1), "data=3", "keep", ElementType::Float32, 2, 128);
}

TEST_CASE("shapes A and B at full length have the peak of their meta run" *
          doctest::skip(std::getenv("OCTAVO_PROOF") == nullptr)) {
  for (const char* stash : {"keep", "recompute"}) {
    for (const std::int64_t length : {512, 2048, 8192}) {
      check_equal(shape(512, 8, 2048, 8), "data=2", stash, ElementType::Float32, 2, length);
      check_equal(shape(1024, 16, 4096, 4), "data=2:zero1", stash, ElementType::Float32, 2, length);
      for (const char* layout : {"tensor=2", "tensor=2:scatter"}) {
        check_equal(shape(512, 8, 2048, 8), layout, stash, ElementType::Float32, 1, length);
        check_equal(shape(1024, 16, 4096, 4), layout, stash, ElementType::Float32, 1, length);
      }
    }
  }
}

TEST_CASE(
    "a sequence of 32,768 tokens trains in 680 MB per rank on four folded ranks, and on four others in no other way" *
    doctest::skip(std::getenv("OCTAVO_PROOF") == nullptr)) {
  constexpr Bytes kLimit = 680'000'000;
  const ModelSpec a = shape(512, 8, 2048, 8);
  DryRunOptions options;
  options.trainer.stash = parse_stash_policy("recompute");
  options.sequence_length = 32768;
  options.memory_limit = kLimit;
  for (const char* layout : {"", "data=4:zero1", "tensor=4", "tensor=4:scatter"}) {
    CAPTURE(layout);
    options.layout = parse_layout(layout);
    options.batch = options.layout.mesh.size(Axis::Data);
    CHECK_THROWS_AS(dry_run(a, options, 0), CheckFailed);
  }
  options.layout = parse_layout("fold=4:weights");
  options.batch = 1;
  const ParamTable table(a);
  const RandomBatches batches({a.vocab_size, options.sequence_length, 1, 0});
  std::vector<MemorySnapshot> peaks(4);
  run_session({.num_ranks = 4, .memory_limit = kLimit, .deadline = std::chrono::hours(1)}, [&](RankSession& session) {
    const int rank = session.world.rank();
    ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, true);
    store.load([](const Parameter& parameter, std::int64_t, std::span<double> rows) {
      std::fill(rows.begin(), rows.end(), parameter.shape.size() == 1 ? 1.0 : 0.01);
    });
    Trainer trainer(a, options.layout, session.world, store, options.trainer);
    session.memory.reset_peak();
    trainer.step(batches, 0);
    peaks[rank] = session.memory.peak();
  });
  for (int rank = 0; rank < 4; ++rank) {
    MESSAGE("rank " << rank << ": " << peaks[rank].to_string());
    CHECK(peaks[rank].total <= kLimit);
    CHECK(peaks[rank].total == dry_run(a, options, rank).peak.total);
  }
}

TEST_CASE("any rank of a large world can be run alone") {
  DryRunOptions options;
  options.layout = parse_layout("data=4096:zero1");
  options.batch = 4096;
  options.sequence_length = 64;
  const DryRun first = dry_run(shape(512, 8, 2048, 1), options, 0),
               last = dry_run(shape(512, 8, 2048, 1), options, 4095);
  CHECK(first.peak.total == last.peak.total);
  options.layout = parse_layout("data=1");
  options.batch = 1;
  const DryRun alone = dry_run(shape(512, 8, 2048, 1), options, 0);
  CHECK(first.state.by_category[static_cast<int>(MemoryCategory::Optimizer)] * 1000 <
        alone.state.by_category[static_cast<int>(MemoryCategory::Optimizer)]);
}
