// What a training step reaches, strategy by strategy, on the shapes of the design's measurements: model FLOP/s over the
// matmul peak of this run, tokens/s, peak memory and waiting. Strategies alternate step by step, so that a slow minute
// of the machine meets all of them. Started as two processes (RANK, WORLD_SIZE=2, MASTER_ADDR, MASTER_PORT, or
// torchrun), the ranks talk over Gloo; else they are threads.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "bench/shapes.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/spec/flops.h"
#include "octavo/train/matmul_peak.h"
#include "octavo/train/rank_session.h"
#include "octavo/train/trainer.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

struct Strategy {
  std::string name, layout, stash;
  ElementType compute = ElementType::Float32;
  bool alone = false;  // two ranks that do not talk: what two ranks could reach at best

  int num_ranks() const { return alone ? 2 : parse_layout(layout).world_size(); }
  /// Sequences of a step over all ranks: one for each index of the data axis.
  int num_sequences() const { return parse_layout(layout).mesh.size(Axis::Data); }
};

struct Figures {
  std::vector<double> seconds;         // forward, backward and gradient reduction
  std::vector<double> update_seconds;  // AdamW, and under ZeRO 1 the gathering of weights
  MemorySnapshot peak;
  double waited = 0;  // seconds per step, rank 0
};

/// One strategy as one rank sees it.
class Side {
 public:
  Side(const Strategy& strategy, const ModelSpec& model, const ParamTable& table, World& world, std::int64_t length)
      : strategy_(strategy), layout_(parse_layout(strategy.layout)) {
    const bool takes_part = strategy.alone || world.rank() < layout_.world_size();
    if (!takes_part) return;
    // One rank, or ranks that do not talk, need no peers.
    if (strategy.alone || layout_.world_size() == 1) {
      own_world_ = make_record_world(0, 1);
      if (strategy.alone) layout_ = parse_layout("");
    }
    World& my_world = own_world_ ? *own_world_ : world;
    world_ = &my_world;
    batches_ = std::make_unique<RandomBatches>(
        RandomBatches::Config{model.vocab_size, length, layout_.mesh.size(Axis::Data), 1});
    store_ =
        std::make_unique<ParamStore>(table, place(table, layout_, my_world.rank()), strategy.compute, at::kCPU, true);
    store_->load([](const Parameter& parameter, std::int64_t, std::span<double> rows) {
      std::fill(rows.begin(), rows.end(), parameter.shape.size() == 1 ? 1.0 : 0.01);
    });
    TrainerConfig config;
    config.stash = parse_stash_policy(strategy.stash);
    trainer_ = std::make_unique<Trainer>(model, layout_, my_world, *store_, config);
  }

  void step(std::int64_t number, MemoryAccount& memory, Figures& figures, bool measured, bool speaks) {
    if (!trainer_) return;
    memory.reset_peak();
    world_->ledger().reset();
    const Bytes before = memory.live().total;
    const auto begin = Clock::now();
    const StepReport report = trainer_->compute_gradients(*batches_, number);
    const auto middle = Clock::now();
    trainer_->apply_update(report);
    const auto end = Clock::now();
    if (!measured || !speaks) return;
    figures.seconds.push_back(std::chrono::duration<double>(middle - begin).count());
    figures.update_seconds.push_back(std::chrono::duration<double>(end - middle).count());
    figures.peak = memory.peak();
    figures.peak.total += own_state() - before;
    for (const LedgerRow& row : world_->ledger().rows()) figures.waited += row.waited;
  }

 private:
  /// Every strategy's state is alive at once; a step's own peak is what it adds, and its own state.
  Bytes own_state() const {
    const StateBytes bytes = state_bytes(store_->placement(), strategy_.compute);
    return bytes.weights + bytes.gradients + bytes.optimizer;
  }

  Strategy strategy_;
  Layout layout_;
  std::unique_ptr<World> own_world_;
  World* world_ = nullptr;
  std::unique_ptr<RandomBatches> batches_;
  std::unique_ptr<ParamStore> store_;
  std::unique_ptr<Trainer> trainer_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run_shape(const std::string& name, std::int64_t length, int rounds, bool with_bf16, const std::string& only) {
  const ModelSpec model = bench_shape(name);
  const ParamTable table(model);
  std::vector<Strategy> strategies = {{"1 rank, keep", "", "keep"},
                                      {"1 rank, recompute", "", "recompute"},
                                      {"1 rank, attention", "", "attention"},
                                      {"2 ranks alone, keep", "data=2", "keep", ElementType::Float32, true},
                                      {"2 ranks alone, recompute", "data=2", "recompute", ElementType::Float32, true}};
  for (const char* layout : {"data=2", "data=2:zero1", "tensor=2", "tensor=2:scatter", "fold=2:weights"}) {
    strategies.push_back({cat(layout, ", keep"), layout, "keep"});
    if (std::string(layout).find("data") != 0) strategies.push_back({cat(layout, ", recompute"), layout, "recompute"});
  }
  if (with_bf16) strategies.push_back({"1 rank, keep, bf16", "", "keep", ElementType::BFloat16});
  std::erase_if(strategies, [&](const Strategy& each) { return each.name.find(only) == std::string::npos; });
  if (strategies.empty()) throw UsageError("[bench] no strategy's name contains \"" + only + "\"");
  std::vector<Figures> figures(strategies.size());
  std::array<std::vector<double>, 2> peak_alone, peak_shared, peak_bf16;
  SessionOptions session_options{
      .num_ranks = 2, .threads_per_rank = 1, .memory_limit = 0, .deadline = std::chrono::seconds(600)};
  session_options.launch = read_launch([](const std::string& variable) {
    const char* value = std::getenv(variable.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  std::string backend;
  run_session(session_options, [&](RankSession& session) {
    const int rank = session.world.rank();
    const DeviceMesh mesh({{Axis::Data, 2}});
    const auto everyone = session.world.split(mesh, kAllAxes);
    std::vector<std::unique_ptr<Side>> sides;
    for (const Strategy& strategy : strategies) {
      sides.push_back(std::make_unique<Side>(strategy, model, table, session.world, length));
    }
    for (int round = 0; round <= rounds; ++round) {
      everyone->barrier();
      if (rank == 0) peak_alone[0].push_back(measure_matmul_peak(ElementType::Float32, 0.1));
      if (rank == 0 && with_bf16) peak_bf16[0].push_back(measure_matmul_peak(ElementType::BFloat16, 0.1));
      everyone->barrier();
      peak_shared[rank].push_back(measure_matmul_peak(ElementType::Float32, 0.1));
      for (std::size_t i = 0; i < sides.size(); ++i) {
        everyone->barrier();
        sides[i]->step(round, session.memory, figures[i], round > 0, rank == 0);
      }
    }
    const at::Tensor peaks = at::zeros({2}, at::kDouble);
    peaks.data_ptr<double>()[rank] = median(peak_shared[rank]);
    everyone->all_reduce(peaks, Purpose::Control).wait();
    if (rank != 0) return;
    backend = session.world.backend();
    for (int index : {0, 1}) peak_shared[index] = {peaks.data_ptr<double>()[index]};
  });
  if (!session_options.has_rank_0()) return;
  const double alone = median(peak_alone[0]), shared = median(peak_shared[0]) + median(peak_shared[1]);
  std::cout << "\nshape " << name << " on " << backend << ", sequences of " << length << " tokens; matmul peak "
            << fixed(alone / 1e9, 1) << " GFLOP/s on one core, " << fixed(shared / 1e9, 1) << " on two at once\n"
            << "strategy                      step ms   of matmul peak   update ms   tokens/s   peak MB   waiting ms   "
               "of ideal\n";
  // Ideal: the same work on both cores at once, without a word between them.
  const auto ideal = [&](const Strategy& strategy) {
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      if (!strategies[i].alone || strategies[i].stash != strategy.stash) continue;
      return (median(figures[i].seconds) + median(figures[i].update_seconds)) * strategy.num_sequences() / 2;
    }
    return 0.0;
  };
  const double flops = training_flops(model, std::array{length});
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const int sequences = strategies[i].num_sequences();
    const double seconds = median(figures[i].seconds);
    double peak = strategies[i].num_ranks() == 2 ? shared : alone;
    if (strategies[i].compute == ElementType::BFloat16) peak = median(peak_bf16[0]);
    char line[200];
    const double update = median(figures[i].update_seconds);
    std::snprintf(line, sizeof(line), "%-29s %7.1f %15.1f%% %11.1f %10.0f %9.1f %12.1f   ", strategies[i].name.c_str(),
                  seconds * 1e3, 100 * sequences * flops / seconds / peak, update * 1e3,
                  sequences * static_cast<double>(length) / (seconds + update),
                  static_cast<double>(figures[i].peak.total) / 1e6,
                  1e3 * figures[i].waited / static_cast<double>(figures[i].seconds.size()));
    std::cout << line;
    const double best = ideal(strategies[i]);
    if (strategies[i].num_ranks() == 2 && best > 0) std::cout << fixed(100 * best / (seconds + update), 1) << "%";
    std::cout << "\n";
  }
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  CLI::App app("Training steps, strategy by strategy");
  std::vector<std::string> shapes = {"A", "B"};
  std::vector<std::int64_t> lengths = {512, 2048, 8192};
  int rounds = 3;
  bool bf16 = false;
  std::string only;
  app.add_option("--shape", shapes, "A, B")->check(CLI::IsMember({"A", "B"}));
  app.add_option("--tokens", lengths, "Tokens per rank and step")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "Measured rounds after the first")->check(CLI::PositiveNumber);
  app.add_flag("--bf16", bf16, "One more row in bfloat16");
  app.add_option("--only", only, "Only strategies whose name contains this, as \"keep\"");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& shape : shapes) {
    for (const std::int64_t length : lengths) octavo::run_shape(shape, length, rounds, bf16, only);
  }
}
