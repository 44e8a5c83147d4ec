// Peak memory of a training step per rank, axis by axis and degree by degree: by dry run, and on request measured on
// ranks that are threads. The largest of the ranks counts.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

#include "bench/shapes.h"
#include "octavo/base/text.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/dryrun/dry_run.h"
#include "octavo/train/rank_session.h"

namespace octavo {
namespace {

struct Options {
  std::string shape = "A";
  std::vector<std::int64_t> lengths = {2048, 8192, 32768, 131072};
  std::vector<int> degrees = {1, 2, 4, 8};
  std::vector<std::string> stashes = {"keep", "recompute"};
  bool measure = false;
};

MemorySnapshot largest(const std::vector<MemorySnapshot>& peaks) {
  return *std::max_element(peaks.begin(), peaks.end(),
                           [](const MemorySnapshot& a, const MemorySnapshot& b) { return a.total < b.total; });
}

MemorySnapshot dry_peak(const ModelSpec& model, const DryRunOptions& options) {
  std::vector<MemorySnapshot> peaks;
  for (int rank = 0; rank < options.layout.world_size(); ++rank) peaks.push_back(dry_run(model, options, rank).peak);
  return largest(peaks);
}

MemorySnapshot measured_peak(const ModelSpec& model, const DryRunOptions& options) {
  const ParamTable table(model);
  const RandomBatches batches({model.vocab_size, options.sequence_length, options.batch, 0});
  std::vector<MemorySnapshot> peaks(options.layout.world_size());
  const SessionOptions session_options{.num_ranks = options.layout.world_size(),
                                       .threads_per_rank = 1,
                                       .memory_limit = 0,
                                       .deadline = std::chrono::hours(1)};
  run_session(session_options, [&](RankSession& session) {
    const int rank = session.world.rank();
    ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, true);
    Trainer trainer(model, options.layout, session.world, store, options.trainer);
    session.memory.reset_peak();
    trainer.step(batches, 0);
    peaks[rank] = session.memory.peak();
  });
  return largest(peaks);
}

/// The ways to cut one sequence over `degree` ranks.
std::vector<std::string> layouts(const ModelSpec& model, int degree) {
  if (degree == 1) return {""};
  const std::int64_t kv_heads = std::get<AttentionSpec>(model.layers.front().mixer).num_kv_heads;
  const std::string misfit = kv_heads % degree == 0 ? "" : ":replicate";
  return {cat("tensor=", degree, misfit), cat("tensor=", degree, ":scatter", misfit), cat("fold=", degree, ":weights"),
          cat("fold=", degree, ":activations")};
}

void run(const Options& options) {
  const ModelSpec model = bench_shape(options.shape);
  std::cout << "shape " << options.shape << ", one sequence, float32, largest peak of a rank, MB\n"
            << "tokens   stash       layout                      peak   of one rank   activations   workspace   "
               "communication"
            << (options.measure ? "    measured   difference\n" : "\n");
  for (const std::int64_t length : options.lengths) {
    for (const std::string& stash : options.stashes) {
      double one = 0;
      for (const int degree : options.degrees) {
        for (const std::string& layout : layouts(model, degree)) {
          DryRunOptions run;
          run.layout = parse_layout(layout);
          run.trainer.stash = parse_stash_policy(stash);
          run.sequence_length = length;
          const MemorySnapshot peak = dry_peak(model, run);
          const auto megabytes = [](Bytes bytes) { return static_cast<double>(bytes) / 1e6; };
          const auto category = [&](MemoryCategory which) {
            return megabytes(peak.by_category[static_cast<int>(which)]);
          };
          if (degree == 1) one = megabytes(peak.total);
          char line[200];
          std::snprintf(line, sizeof(line), "%-8lld %-11s %-24s %8.1f %13.3f %13.1f %11.1f %15.1f",
                        static_cast<long long>(length), stash.c_str(), layout.empty() ? "one rank" : layout.c_str(),
                        megabytes(peak.total), one > 0 ? megabytes(peak.total) / one : 0.0,
                        category(MemoryCategory::Activations), category(MemoryCategory::Workspace),
                        category(MemoryCategory::Communication));
          std::cout << line;
          if (options.measure) {
            const MemorySnapshot measured = measured_peak(model, run);
            std::snprintf(line, sizeof(line), " %11.1f %11.4f%%", megabytes(measured.total),
                          100.0 * std::abs(static_cast<double>(measured.total - peak.total)) /
                              static_cast<double>(measured.total));
            std::cout << line;
          }
          std::cout << std::endl;
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Peak memory of a step: tensor parallelism and folding, degree by degree");
  app.add_option("--shape", options.shape, "A or B")->check(CLI::IsMember({"A", "B"}))->capture_default_str();
  app.add_option("--tokens", options.lengths, "Tokens of the sequence")->check(CLI::PositiveNumber);
  app.add_option("--degrees", options.degrees, "Ranks")->check(CLI::PositiveNumber);
  app.add_option("--stash", options.stashes, "What forward keeps");
  app.add_flag("--measure", options.measure, "Run the step too");
  CLI11_PARSE(app, argc, argv);
  octavo::run(options);
}
