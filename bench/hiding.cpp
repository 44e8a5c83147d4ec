// What hiding is worth: training on a few ranks behind an emulated link that is busy for a given share of the compute
// time, and how much of that traffic a step still waits for.
//
// A round is three steps one after another: without a link, with a link and overlap (what travels does so while
// something is computed), with a link and none. The first sets the bandwidth of the other two: all traffic takes
// `share` of the time from its first posting to its last. Under data that is the backward, from the first gradient
// bucket on; under fold all of the step. Figures are medians over the rounds that took least, a quarter of them: those
// that other programs on the machine left alone, since a rank that is held up holds up every collective.
//
// Fill and drain have nothing to hide behind and are listed apart: what is posted first and last in a step (under data
// the last bucket, the embedding's), and under fold the first keys and values of every pass over an attention block.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>

#include "octavo/base/text.h"
#include "octavo/comm/emulated_world.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/spec/parameters.h"
#include "octavo/train/rank_session.h"
#include "octavo/train/trainer.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t hidden = 256, features = 1024, vocabulary = 2048, length = 256;
  int layers = 6, rounds = 60;
  double share = 0.8;  // of the compute time that the link is busy
  Seconds latency = 20e-6;
  Bytes bucket_bytes = 256 << 10;  // every block of the default model is a bucket of its own
  std::string layout = "data=2", stash = "keep";
  bool timeline = false;
};

ModelSpec model_of(const Options& options) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = options.hidden;
  model.vocab_size = options.vocabulary;
  for (int layer = 0; layer < options.layers; ++layer) {
    const std::int64_t heads = options.hidden / 64;
    model.layers.push_back(
        {AttentionSpec{heads, heads % 2 == 0 ? heads / 2 : heads, 64, false, {}}, GatedMlpSpec{options.features}});
  }
  return model;
}

/// Seconds of one step, as rank 0 saw them.
struct Step {
  Seconds whole = 0;           // forward, backward and gradient reduction
  Seconds exposed = 0;         // of what could have been hidden
  Seconds fill_and_drain = 0;  // exposed of the rest
  Seconds skew = 0;            // waiting for other ranks to post
  Seconds busy = 0;            // of the link
};

struct Round {
  std::array<Step, 3> steps;  // no link; link, overlap; link, no overlap
  Seconds window = 0;         // mean over the ranks, from the first posting to the last, without a link
  double bandwidth = 0;
  std::vector<LedgerEntry> entries;  // of the step with link and overlap

  Seconds whole() const { return steps[0].whole + steps[1].whole + steps[2].whole; }
};

/// Which transfers of a step have nothing to hide behind.
class FillAndDrain {
 public:
  /// `exchanges_per_pass`: of keys and values, over an attention block.
  explicit FillAndDrain(int exchanges_per_pass) : exchanges_per_pass_(exchanges_per_pass) {}

  std::vector<bool> of(const std::vector<LedgerEntry>& entries) const {
    std::vector<bool> result(entries.size(), false);
    int num_gathers = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Transfer& transfer = entries[i].transfer;
      const bool gathers = transfer.purpose == Purpose::KeysValues && transfer.kind == Collective::AllGather;
      if (gathers && num_gathers++ % exchanges_per_pass_ == 0) result[i] = true;
    }
    const bool fetches_first = entries.front().transfer.purpose == Purpose::Weights;
    if (fetches_first) result.front() = true;
    result.back() = true;
    return result;
  }

 private:
  int exchanges_per_pass_;
};

/// One rank's model, and what it takes to run a step of it in some world.
class Subject {
 public:
  Subject(const Options& options, World& world)
      : options_(options),
        model_(model_of(options)),
        table_(model_),
        layout_(parse_layout(options.layout)),
        batches_(RandomBatches::Config{model_.vocab_size, options.length * layout_.mesh.size(Axis::Fold),
                                       layout_.mesh.size(Axis::Data), 1}),
        store_(table_, place(table_, layout_, world.rank(), options.bucket_bytes), ElementType::Float32, at::kCPU,
               true),
        ends_(num_fold_steps(store_.placement().shares[1], fold_parts(layout_, BlockKind::Attention))) {
    store_.load([](const Parameter& parameter, std::int64_t, std::span<double> rows) {
      std::fill(rows.begin(), rows.end(), parameter.shape.size() == 1 ? 1.0 : 0.01);
    });
  }

  /// Leaves what travelled beside the computation in `entries`, in the order of posting.
  Step run(World& world, bool overlap, std::vector<LedgerEntry>& entries) {
    TrainerConfig config;
    config.overlap = overlap;
    config.stash = parse_stash_policy(options_.stash);
    Trainer trainer(model_, layout_, world, store_, config);
    world.split(layout_.mesh, kAllAxes)->barrier();
    world.ledger().keep_entries(true);
    world.ledger().reset();
    const auto begin = Clock::now();
    (void)trainer.compute_gradients(batches_, 0);
    Step step;
    step.whole = std::chrono::duration<Seconds>(Clock::now() - begin).count();
    entries.clear();
    for (const LedgerEntry& entry : world.ledger().entries()) {
      // The sums of the norms' gradients, once a step, are no part of the computation.
      const bool is_sum = layout_.mesh.size(Axis::Fold) > 1 && entry.transfer.kind == Collective::AllReduce;
      if (entry.transfer.purpose != Purpose::Norm && !is_sum) entries.push_back(entry);
    }
    const std::vector<bool> at_the_ends = ends_.of(entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const TransferTimes& times = entries[i].times;
      const Seconds skew = std::clamp(times.matched - (times.done - times.waited), 0.0, times.waited);
      step.skew += skew;
      (at_the_ends[i] ? step.fill_and_drain : step.exposed) += times.waited - skew;
    }
    return step;
  }

 private:
  const Options& options_;
  const ModelSpec model_;
  const ParamTable table_;
  const Layout layout_;
  const RandomBatches batches_;
  ParamStore store_;
  const FillAndDrain ends_;
};

Round run_round(const Options& options, Subject& subject, World& world, Communicator& everyone) {
  Round round;
  round.steps[0] = subject.run(world, true, round.entries);
  Bytes traffic = 0;
  for (const LedgerEntry& entry : round.entries) traffic += entry.transfer.logical;
  at::Tensor sums = at::zeros({2}, at::kDouble);
  sums.select(0, 0).fill_(round.entries.back().transfer.posted - round.entries.front().transfer.posted);
  sums.select(0, 1).fill_(static_cast<double>(traffic));
  everyone.all_reduce(sums, Purpose::Control).wait();  // all ranks must emulate the same link
  round.window = sums[0].item<double>() / everyone.size();
  const LinkSpec link{.bytes_per_second = sums[1].item<double>() / everyone.size() / (options.share * round.window),
                      .latency = options.latency};
  round.bandwidth = link.bytes_per_second;
  std::vector<LedgerEntry> ignored;
  for (const bool overlap : {true, false}) {
    const auto emulated = make_emulated_world(world, link);
    Step& step = round.steps[overlap ? 1 : 2];
    step = subject.run(*emulated, overlap, overlap ? round.entries : ignored);
    step.busy = busy_seconds(link, emulated->ledger());
  }
  return round;
}

Seconds median(std::vector<Seconds> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <class Value>
Seconds median_of(const std::vector<Round>& rounds, Value&& value) {
  std::vector<Seconds> values;
  for (const Round& round : rounds) values.push_back(value(round));
  return median(values);
}

void print_step(const std::string& name, const std::vector<Round>& rounds, std::size_t which) {
  const auto of = [&](auto member) {
    return median_of(rounds, [&](const Round& round) { return round.steps[which].*member; });
  };
  const auto share = [&](auto member) {
    return 100 *
           median_of(rounds, [&](const Round& round) { return round.steps[which].*member / round.steps[which].whole; });
  };
  char line[200];
  std::snprintf(line, sizeof(line), "%-18s %8.1f %9.1f %8.1f%% %14.1f%% %8.1f%%\n", name.c_str(),
                of(&Step::whole) * 1e3, of(&Step::busy) * 1e3, share(&Step::exposed), share(&Step::fill_and_drain),
                share(&Step::skew));
  std::cout << line;
}

/// When each transfer was posted here, matched, and off the link, in milliseconds from the first posting, and how long
/// this rank was blocked for it.
void print_timeline(const std::vector<LedgerEntry>& entries) {
  const Seconds begin = entries.front().transfer.posted;
  std::cout << "\none step with link and overlap, ms\npurpose      kind              bytes     posted    matched       "
               "done     waited\n";
  for (const LedgerEntry& entry : entries) {
    char line[160];
    std::snprintf(line, sizeof(line), "%-12s %-14s %8s %10.1f %10.1f %10.1f %10.1f\n",
                  std::string(purpose_name(entry.transfer.purpose)).c_str(),
                  std::string(collective_name(entry.transfer.kind)).c_str(),
                  format_bytes(entry.transfer.logical).c_str(), (entry.transfer.posted - begin) * 1e3,
                  (entry.times.matched - begin) * 1e3, (entry.times.done - begin) * 1e3, entry.times.waited * 1e3);
    std::cout << line;
  }
}

void run(const Options& options) {
  std::vector<Round> rounds;
  const Layout layout = parse_layout(options.layout);
  const SessionOptions session_options{.num_ranks = layout.world_size(),
                                       .threads_per_rank = 1,
                                       .memory_limit = 0,
                                       .deadline = std::chrono::seconds(600)};
  run_session(session_options, [&](RankSession& session) {
    const auto everyone = session.world.split(layout.mesh, kAllAxes);
    Subject subject(options, session.world);
    for (int number = 0; number <= options.rounds; ++number) {
      Round round = run_round(options, subject, session.world, *everyone);
      if (session.world.rank() == 0 && number > 0) rounds.push_back(std::move(round));
    }
  });
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.whole() < b.whole(); });
  const std::size_t num_rounds = rounds.size();
  rounds.resize((rounds.size() + 3) / 4);
  std::cout << "hidden " << options.hidden << ", " << options.layers << " layers, vocabulary " << options.vocabulary
            << ", " << layout.world_size() << " ranks (" << options.layout << ", stash " << options.stash << ") of "
            << options.length << " tokens, " << with_commas(num_parameters(model_of(options))) << " parameters; "
            << rounds.size() << " of " << num_rounds << " rounds\nfrom the first posting to the last it takes "
            << format_seconds(median_of(rounds, [](const Round& round) { return round.window; })) << "; the traffic ("
            << format_bytes(static_cast<Bytes>(median_of(rounds, [](const Round& round) { return round.bandwidth; })))
            << "/s, " << format_seconds(options.latency) << ") keeps the link busy for "
            << fixed(100 * options.share, 0) << "% of that\n\n"
            << "                    step ms   busy ms  exposed  fill and drain     skew\n";
  print_step("no link", rounds, 0);
  print_step("link, overlap", rounds, 1);
  print_step("link, no overlap", rounds, 2);
  if (options.timeline) print_timeline(rounds[rounds.size() / 2].entries);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Traffic behind an emulated link: what a step hides of it");
  app.add_option("--hidden", options.hidden, "Hidden size, a multiple of 64")->capture_default_str();
  app.add_option("--features", options.features, "Features of the MLP")->capture_default_str();
  app.add_option("--layers", options.layers, "Layers")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "Vocabulary rows")->capture_default_str();
  app.add_option("--tokens", options.length, "Tokens per rank and step")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds; those that took least count, a quarter")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--share", options.share, "Of the compute time that the link is busy")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--bucket-bytes", options.bucket_bytes, "Gradient bytes at which a bucket is closed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--layout", options.layout, "Data or fold, on 2 to 4 ranks")
      ->check(CLI::IsMember({"data=2", "data=2:zero1", "data=4", "fold=2:weights", "fold=3:weights", "fold=4:weights"}))
      ->capture_default_str();
  app.add_option("--stash", options.stash, "keep, recompute or attention")->capture_default_str();
  app.add_flag("--timeline", options.timeline, "Print every transfer of one step");
  CLI11_PARSE(app, argc, argv);
  octavo::run(options);
}
