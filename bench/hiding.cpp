// What hiding is worth: data-parallel training on two ranks behind an emulated link that is busy for a given share of
// the backward's compute time, and how much of that traffic a step still waits for.
//
// A round is three steps one after another: without a link, with a link and overlap (buckets travel while backward
// runs), with a link and none. The first sets the bandwidth of the other two: all gradient traffic takes `share` of the
// time from the first bucket's posting to the last one's. Figures are medians over the rounds that took least, a
// quarter of them: those that other programs on the machine left alone, since a rank that is held up holds up every
// collective.
//
// Buckets that are posted when backward is (all but) over have nothing left to hide behind: the last, the embedding's,
// is listed apart.
#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>

#include "octavo/base/text.h"
#include "octavo/comm/emulated_world.h"
#include "octavo/dataset/random_batches.h"
#include "octavo/train/rank_session.h"
#include "octavo/train/trainer.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t hidden = 256, features = 1024, vocabulary = 2048, length = 256;
  int layers = 6, rounds = 60;
  double share = 0.8;  // of backward's compute time that the link is busy
  Seconds latency = 20e-6;
  Bytes bucket_bytes = 256 << 10;  // every block of the default model is a bucket of its own
  std::string layout = "data=2";
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
  Seconds whole = 0;            // forward, backward and gradient reduction
  Seconds exposed_buckets = 0;  // of all gradient buckets but the last one posted
  Seconds exposed_last = 0;     // of that
  Seconds skew = 0;             // of all of them
  Seconds busy = 0;             // of the link
};

struct Round {
  std::array<Step, 3> steps;  // no link; link, overlap; link, no overlap
  Seconds backward = 0;       // mean over the ranks, from the first bucket to the last, without a link
  double bandwidth = 0;
  std::vector<LedgerEntry> buckets;  // of the step with link and overlap

  Seconds whole() const { return steps[0].whole + steps[1].whole + steps[2].whole; }
};

/// One rank's model, and what it takes to run a step of it in some world.
class Subject {
 public:
  Subject(const Options& options, World& world)
      : options_(options),
        model_(model_of(options)),
        table_(model_),
        layout_(parse_layout(options.layout)),
        batches_(RandomBatches::Config{model_.vocab_size, options.length, 2, 1}),
        store_(table_, place(table_, layout_, world.rank(), options.bucket_bytes), ElementType::Float32, at::kCPU,
               true) {
    store_.load([](const Parameter& parameter, std::int64_t, std::span<double> rows) {
      std::fill(rows.begin(), rows.end(), parameter.shape.size() == 1 ? 1.0 : 0.01);
    });
  }

  /// Leaves the gradient buckets' entries in `buckets`, in the order of posting.
  Step run(World& world, bool overlap, std::vector<LedgerEntry>& buckets) {
    TrainerConfig config;
    config.overlap = overlap;
    Trainer trainer(model_, layout_, world, store_, config);
    world.split(layout_.mesh, kAllAxes)->barrier();
    world.ledger().keep_entries(true);
    world.ledger().reset();
    const auto begin = Clock::now();
    (void)trainer.compute_gradients(batches_, 0);
    Step step;
    step.whole = std::chrono::duration<Seconds>(Clock::now() - begin).count();
    buckets.clear();
    for (const LedgerEntry& entry : world.ledger().entries()) {
      if (entry.transfer.purpose == Purpose::Gradients) buckets.push_back(entry);
    }
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const TransferTimes& times = buckets[i].times;
      const Seconds skew = std::clamp(times.matched - (times.done - times.waited), 0.0, times.waited);
      step.skew += skew;
      (i + 1 < buckets.size() ? step.exposed_buckets : step.exposed_last) += times.waited - skew;
    }
    return step;
  }

  const Placement& placement() const { return store_.placement(); }

 private:
  const Options& options_;
  const ModelSpec model_;
  const ParamTable table_;
  const Layout layout_;
  const RandomBatches batches_;
  ParamStore store_;
};

Round run_round(const Options& options, Subject& subject, World& world, Communicator& everyone) {
  Round round;
  round.steps[0] = subject.run(world, true, round.buckets);
  at::Tensor backward =
      at::full({1}, round.buckets.back().transfer.posted - round.buckets.front().transfer.posted, at::kDouble);
  everyone.all_reduce(backward, Purpose::Control).wait();  // both ranks must emulate the same link
  round.backward = backward.item<double>() / 2;
  Bytes traffic = 0;
  for (const LedgerEntry& bucket : round.buckets) traffic += bucket.transfer.logical;
  const LinkSpec link{.bytes_per_second = static_cast<double>(traffic) / (options.share * round.backward),
                      .latency = options.latency};
  round.bandwidth = link.bytes_per_second;
  std::vector<LedgerEntry> ignored;
  for (const bool overlap : {true, false}) {
    const auto emulated = make_emulated_world(world, link);
    Step& step = round.steps[overlap ? 1 : 2];
    step = subject.run(*emulated, overlap, overlap ? round.buckets : ignored);
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
  std::snprintf(line, sizeof(line), "%-18s %8.1f %9.1f %17.1f%% %13.1f%% %8.1f%%\n", name.c_str(),
                of(&Step::whole) * 1e3, of(&Step::busy) * 1e3, share(&Step::exposed_buckets),
                share(&Step::exposed_last), share(&Step::skew));
  std::cout << line;
}

/// When each bucket was posted here, matched, and off the link, in milliseconds from the first posting, and how long
/// this rank was blocked for it.
void print_timeline(const std::vector<LedgerEntry>& buckets) {
  const Seconds begin = buckets.front().transfer.posted;
  std::cout << "\nbuckets of one step with overlap, ms\n   bytes     posted    matched       done     waited\n";
  for (const LedgerEntry& bucket : buckets) {
    char line[120];
    std::snprintf(line, sizeof(line), "%8s %10.1f %10.1f %10.1f %10.1f\n",
                  format_bytes(bucket.transfer.logical).c_str(), (bucket.transfer.posted - begin) * 1e3,
                  (bucket.times.matched - begin) * 1e3, (bucket.times.done - begin) * 1e3, bucket.times.waited * 1e3);
    std::cout << line;
  }
}

void run(const Options& options) {
  std::vector<Round> rounds;
  const SessionOptions session_options{
      .num_ranks = 2, .threads_per_rank = 1, .memory_limit = 0, .deadline = std::chrono::seconds(600)};
  run_session(session_options, [&](RankSession& session) {
    const auto everyone = session.world.split(DeviceMesh({{Axis::Data, 2}}), kAllAxes);
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
            << ", 2 ranks (" << options.layout << ") of " << options.length << " tokens, "
            << with_commas(num_parameters(model_of(options))) << " parameters; " << rounds.size() << " of "
            << num_rounds << " rounds\nbackward from the first bucket to the last takes "
            << format_seconds(median_of(rounds, [](const Round& round) { return round.backward; }))
            << "; the gradients' traffic ("
            << format_bytes(static_cast<Bytes>(median_of(rounds, [](const Round& round) { return round.bandwidth; })))
            << "/s, " << format_seconds(options.latency) << ") keeps the link busy for "
            << fixed(100 * options.share, 0) << "% of that\n\n"
            << "                    step ms   busy ms  exposed but last  exposed last     skew\n";
  print_step("no link", rounds, 0);
  print_step("link, overlap", rounds, 1);
  print_step("link, no overlap", rounds, 2);
  print_timeline(rounds[rounds.size() / 2].buckets);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Gradient traffic behind an emulated link: what backward hides of it");
  app.add_option("--hidden", options.hidden, "Hidden size, a multiple of 64")->capture_default_str();
  app.add_option("--features", options.features, "Features of the MLP")->capture_default_str();
  app.add_option("--layers", options.layers, "Layers")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "Vocabulary rows")->capture_default_str();
  app.add_option("--tokens", options.length, "Tokens per rank and step")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds; those that took least count, a quarter")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--share", options.share, "Of backward's time that the link is busy")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--bucket-bytes", options.bucket_bytes, "Gradient bytes at which a bucket is closed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--layout", options.layout, "data=2 or data=2:zero1")
      ->check(CLI::IsMember({"data=2", "data=2:zero1"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  octavo::run(options);
}
