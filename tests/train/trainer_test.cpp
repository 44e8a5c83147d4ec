#include "octavo/train/trainer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "octavo/base/error.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/train/model_source.h"
#include "octavo/train/rank_session.h"
#include "proof/small_models.h"

using namespace octavo;
using octavo::testing::config_text;
using octavo::testing::ConfigFile;

namespace {

struct Run {
  std::string layout = "data=2";
  ElementType compute = ElementType::Float32;
  Bytes memory_limit = 0;
  TrainerConfig trainer;
  std::int64_t steps = 2;
};

/// Trains, and hands every rank's trainer and store to `body` at the end.
template <class Body>
void train(const ModelSource& model, const Run& run, const Body& body) {
  const ParamTable table(model.spec());
  const Layout layout = parse_layout(run.layout);
  const RandomBatches batches({model.spec().vocab_size, 16, 4, 5});
  run_session({.num_ranks = layout.world_size(), .memory_limit = run.memory_limit}, [&](RankSession& session) {
    ParamStore store(table, place(table, layout, session.world.rank()), run.compute, at::kCPU, true);
    store.load(model.rows());
    Trainer trainer(model.spec(), layout, session.world, store, run.trainer);
    for (std::int64_t step = 0; step < run.steps; ++step) trainer.step(batches, step);
    body(session, trainer, store);
  });
}

std::string error_of(const ModelSource& model, const Run& run) {
  try {
    train(model, run, [](RankSession&, Trainer&, ParamStore&) {});
  } catch (const CheckFailed& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a loss that is not finite stops the run with step, rank and the first bad tensor") {
  const ConfigFile file(config_text("llama", 4, 2, false));
  const ModelSource model(file.path(), 1);
  Run run;
  run.trainer.schedule.peak = 1e38;
  run.trainer.clip_norm.reset();
  run.steps = 20;
  const std::string message = error_of(model, run);
  CAPTURE(message);
  CHECK(message.find("[train] step ") == 0);
  CHECK(message.find("rank ") != std::string::npos);
  CHECK(message.find("first bad tensor: the weights of embedding.rows") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("an allocation beyond the memory limit ends every rank with a report of what is alive") {
  const ConfigFile file(config_text("llama", 4, 2, false));
  const ModelSource model(file.path(), 1);
  Run run;
  run.memory_limit = 150000;  // the state alone takes about 110 kB
  const std::string message = error_of(model, run);
  CAPTURE(message);
  CHECK(message.find("[memory]") == 0);
  CHECK(message.find("optimizer") != std::string::npos);
  run.memory_limit = 100000000;
  CHECK(error_of(model, run).empty());
}

TEST_CASE("what a step moves over the data axis is the formula of its layout") {
  const ConfigFile file(config_text("llama", 4, 2, false));
  const ModelSource model(file.path(), 1);
  const ParamTable table(model.spec());
  for (const int ranks : {2, 4}) {
    for (const ElementType compute : {ElementType::Float32, ElementType::BFloat16}) {
      for (const bool zero1 : {false, true}) {
        Run run;
        run.layout = "data=" + std::to_string(ranks) + (zero1 ? ":zero1" : "");
        run.compute = compute;
        run.steps = 1;
        const Placement placement = place(table, parse_layout(run.layout), 0);
        const Bytes share = placement.local_elements / ranks * (ranks - 1);
        const auto buckets = static_cast<std::int64_t>(placement.buckets.size());
        train(model, run, [&](RankSession& session, Trainer&, ParamStore&) {
          std::map<std::pair<Purpose, Collective>, std::pair<std::int64_t, Bytes>> seen, expected;
          for (const LedgerRow& row : session.world.ledger().rows()) {
            CHECK(row.group == (row.purpose == Purpose::Norm ? "world" : "data"));
            seen[{row.purpose, row.kind}] = {row.count, row.logical};
          }
          expected[{Purpose::Norm, Collective::AllReduce}] = {1, 2 * (ranks - 1) * 16 / ranks};
          if (zero1) {
            expected[{Purpose::Gradients, Collective::ReduceScatter}] = {buckets, share * 4};
            expected[{Purpose::Weights, Collective::AllGather}] = {buckets, share * element_bytes(compute)};
          } else {
            expected[{Purpose::Gradients, Collective::AllReduce}] = {buckets, 2 * share * 4};
          }
          CHECK((seen == expected));
        });
      }
    }
  }
}

TEST_CASE("overlap changes when gradients travel, not a bit of what they are") {
  const ConfigFile file(config_text("qwen3", 4, 2, true));
  const ModelSource model(file.path(), 1);
  std::vector<std::vector<double>> weights(2);
  for (const bool overlap : {false, true}) {
    Run run;
    run.layout = "data=3:zero1";
    run.trainer.overlap = overlap;
    train(model, run, [&](RankSession& session, Trainer&, ParamStore& store) {
      if (session.world.rank() != 0) return;
      for (const Parameter& parameter : store.table().parameters()) {
        std::vector<double> values(parameter.elements());
        store.read_rows(store.weights(), parameter, 0, values);
        weights[overlap].insert(weights[overlap].end(), values.begin(), values.end());
      }
    });
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("a saved model read back computes the same loss") {
  const ConfigFile file(config_text("qwen3", 4, 2, true));
  const ModelSource model(file.path(), 1);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("octavo-saved-" + std::to_string(::getpid()));
  const RandomBatches batches({model.spec().vocab_size, 16, 4, 6});
  for (const ElementType compute : {ElementType::Float32, ElementType::BFloat16}) {
    Run run;
    run.compute = compute;
    double before = 0, after = 0;
    train(model, run, [&](RankSession& session, Trainer& trainer, ParamStore& store) {
      const double loss = trainer.evaluate(batches, 1);
      save_model(folder, model, store, *trainer.groups().world);
      if (session.world.rank() == 0) before = loss;
    });
    run.steps = 0;
    const ModelSource saved(folder, 0);
    train(saved, run, [&](RankSession& session, Trainer& trainer, ParamStore&) {
      const double loss = trainer.evaluate(batches, 1);
      if (session.world.rank() == 0) after = loss;
    });
    CHECK(before == after);
    CHECK(before > 0);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a rank that throws in the middle of a step ends the others, and its error is the one that is reported") {
  const ConfigFile file(config_text("llama", 4, 2, false));
  const ModelSource model(file.path(), 1);
  const ParamTable table(model.spec());
  const Layout layout = parse_layout("data=3");
  const RandomBatches batches({model.spec().vocab_size, 16, 6, 5});
  const auto run = [&] {
    run_session({.num_ranks = 3}, [&](RankSession& session) {
      // Small buckets: several are in flight when rank 1 fails at the embedding, the last block of its backward.
      ParamStore store(table, place(table, layout, session.world.rank(), 1), ElementType::Float32, at::kCPU, true);
      store.load(model.rows());
      RankGroups groups(session.world, layout, store.placement());
      GradientReducer reducer(store, *groups.data, layout.zero);
      Decoder decoder(model.spec(), store, groups, {});
      TokenBatch batch;
      batch.ids_N = at::zeros({8}, at::kLong);
      batch.labels_N = at::zeros({8}, at::kLong);
      batch.lengths = {8};
      decoder.forward_backward(batch, 0, 1.0, [&](int block) {
        if (session.world.rank() == 1 && block == 0) throw UsageError("[test] rank 1 met something");
        reducer.block_done(block);
      });
      reducer.finish();
    });
  };
  CHECK_THROWS_WITH_AS(run(), "[test] rank 1 met something", UsageError);
}

TEST_CASE("a rank that takes no sequence at once is a usage error") {
  const ConfigFile file(config_text("llama", 4, 2, false));
  const ModelSource model(file.path(), 1);
  Run run;
  run.trainer.micro_batch = 0;
  CHECK_THROWS_AS(train(model, run, [](RankSession&, Trainer&, ParamStore&) {}), UsageError);
}
