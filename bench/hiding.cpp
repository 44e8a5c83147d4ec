// What hiding is worth: data-parallel training on two ranks behind an emulated link that is busy for a given share of
// the backward's compute time, and how much of that traffic a step still waits for.
//
// Measured in one process and in turns, so that a slow minute of the machine meets all: the step without a link, with a
// link and overlap (buckets travel while backward runs), and with a link without overlap. The last bucket, the
// embedding's, is posted when backward is over and has nothing left to hide behind: it is listed apart. Figures are
// medians over the fastest quarter of the rounds.
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
  std::int64_t hidden = 256, features = 1024, vocabulary = 2048, length = 512;
  int layers = 8, rounds = 40;
  double share = 0.8;  // of backward's compute time that the link is busy
  double latency = 20e-6;
  Bytes bucket_bytes = 1 << 20;
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
        {AttentionSpec{heads, std::max<std::int64_t>(1, heads / 2), 64, false, {}}, GatedMlpSpec{options.features}});
  }
  return model;
}

struct Step {
  Seconds seconds = 0;               // forward, backward and gradient reduction
  Seconds exposed_buckets = 0;       // of all gradient buckets but the last one posted
  Seconds exposed_last = 0;          // of the last
  Seconds skew = 0;                  // of all gradient buckets
  Seconds busy = 0;                  // of the link
  Seconds from_first_bucket = 0;     // from the first bucket's posting to the last one's: what traffic can hide behind
  std::vector<LedgerEntry> buckets;  // in the order of posting
};

/// One way to run a step, as one rank sees it. State of its own, so that the ways do not meet.
class Side {
 public:
  Side(const Options& options, const ModelSpec& model, const ParamTable& table, World& world, bool overlap)
      : layout_(parse_layout(options.layout)),
        world_(world),
        batches_(RandomBatches::Config{model.vocab_size, options.length, 2, 1}),
        store_(table, place(table, layout_, world.rank(), options.bucket_bytes), ElementType::Float32, at::kCPU, true) {
    store_.load([](const Parameter& parameter, std::int64_t, std::span<double> rows) {
      std::fill(rows.begin(), rows.end(), parameter.shape.size() == 1 ? 1.0 : 0.01);
    });
    TrainerConfig config;
    config.overlap = overlap;
    trainer_ = std::make_unique<Trainer>(model, layout_, world, store_, config);
    world.ledger().keep_entries(true);
  }

  Step run(std::int64_t number) {
    world_.ledger().reset();
    const auto begin = Clock::now();
    (void)trainer_->compute_gradients(batches_, number);
    Step step;
    step.seconds = std::chrono::duration<Seconds>(Clock::now() - begin).count();
    std::vector<LedgerEntry>& buckets = step.buckets;
    for (const LedgerEntry& entry : world_.ledger().entries()) {
      if (entry.transfer.purpose == Purpose::Gradients) buckets.push_back(entry);
    }
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const TransferTimes& times = buckets[i].times;
      const Seconds skew = std::clamp(times.matched - (times.done - times.waited), 0.0, times.waited);
      step.skew += skew;
      (i + 1 < buckets.size() ? step.exposed_buckets : step.exposed_last) += times.waited - skew;
    }
    step.from_first_bucket = buckets.back().transfer.posted - buckets.front().transfer.posted;
    return step;
  }

  Ledger& ledger() { return world_.ledger(); }
  const Placement& placement() const { return store_.placement(); }

 private:
  Layout layout_;
  World& world_;
  RandomBatches batches_;
  ParamStore store_;
  std::unique_ptr<Trainer> trainer_;
};

/// The fastest quarter of the steps: those that other programs on the machine left alone. One rank that is held up
/// holds up every collective, on any link.
std::vector<Step> undisturbed(std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.seconds < b.seconds; });
  steps.resize((steps.size() + 3) / 4);
  return steps;
}

/// Element by element.
Step median(const std::vector<Step>& steps) {
  const auto of = [&](auto member) {
    std::vector<Seconds> values;
    for (const Step& step : steps) values.push_back(step.*member);
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  return {.seconds = of(&Step::seconds),
          .exposed_buckets = of(&Step::exposed_buckets),
          .exposed_last = of(&Step::exposed_last),
          .skew = of(&Step::skew),
          .busy = of(&Step::busy),
          .from_first_bucket = of(&Step::from_first_bucket),
          .buckets = {}};
}

/// The buckets of the middle one of `sorted` steps: when each was posted here, matched, and off the link, in
/// milliseconds from the first posting, and how long this rank was blocked for it.
void print_timeline(const std::vector<Step>& sorted) {
  const auto middle = sorted.begin() + sorted.size() / 2;
  const Seconds begin = middle->buckets.front().transfer.posted;
  std::cout << "\nbuckets of a step with overlap (rank 0), ms\n   bytes     posted    matched       done     waited\n";
  for (const LedgerEntry& bucket : middle->buckets) {
    char line[120];
    std::snprintf(line, sizeof(line), "%8s %10.1f %10.1f %10.1f %10.1f\n",
                  format_bytes(bucket.transfer.logical).c_str(), (bucket.transfer.posted - begin) * 1e3,
                  (bucket.times.matched - begin) * 1e3, (bucket.times.done - begin) * 1e3, bucket.times.waited * 1e3);
    std::cout << line;
  }
}

void print_line(const std::string& name, const Step& step) {
  const auto share = [&](Seconds part) { return 100 * part / step.seconds; };
  char line[200];
  std::snprintf(line, sizeof(line), "%-24s %8.1f %10.1f %12.1f%% %14.1f%% %9.1f%%\n", name.c_str(), step.seconds * 1e3,
                step.busy * 1e3, share(step.exposed_buckets), share(step.exposed_last), share(step.skew));
  std::cout << line;
}

void run(const Options& options) {
  const ModelSpec model = model_of(options);
  const ParamTable table(model);
  std::array<std::vector<Step>, 3> steps;  // no link, overlap, no overlap; rank 0
  LinkSpec link{};
  Seconds backward = 0;
  std::string buckets;
  const SessionOptions session_options{.num_ranks = 2, .threads_per_rank = 1, .deadline = std::chrono::seconds(600)};
  run_session(session_options, [&](RankSession& session) {
    const int rank = session.world.rank();
    const auto everyone = session.world.split(DeviceMesh({{Axis::Data, 2}}), kAllAxes);
    // First the step without link: its backward sets the bandwidth. Overlapping buckets mark where backward is.
    Seconds my_backward = 0;
    Bytes traffic = 0;
    {
      Side plain(options, model, table, session.world, true);
      std::vector<Step> warm;
      for (int round = 0; round < 13; ++round) warm.push_back(plain.run(round));
      my_backward = median(undisturbed({warm.begin() + 1, warm.end()})).from_first_bucket;
      for (const LedgerRow& row : session.world.ledger().rows()) {
        if (row.purpose == Purpose::Gradients) traffic += row.logical;
      }
      if (rank == 0) {
        for (const Bucket& bucket : plain.placement().buckets)
          buckets += cat(" ", format_bytes(bucket.local.size() * 4));
      }
    }
    // Both ranks must emulate the same link.
    at::Tensor slowest = at::full({1}, my_backward, at::kDouble);
    everyone->all_reduce(slowest, Purpose::Control).wait();
    const Seconds both = slowest.item<double>() / 2;
    const LinkSpec spec{.bytes_per_second = static_cast<double>(traffic) / (options.share * both),
                        .latency = options.latency};
    if (rank == 0) {
      link = spec;
      backward = both;
    }
    session.world.ledger().keep_entries(false);
    Side plain(options, model, table, session.world, true);
    const auto emulated = make_emulated_world(session.world, spec);
    Side overlap(options, model, table, *emulated, true), none(options, model, table, *emulated, false);
    std::array<Side*, 3> sides = {&plain, &overlap, &none};
    for (int round = 0; round <= options.rounds; ++round) {
      for (std::size_t i = 0; i < sides.size(); ++i) {
        everyone->barrier();
        session.world.ledger().reset();
        Step step = sides[i]->run(round);
        if (i > 0) step.busy = busy_seconds(spec, sides[i]->ledger());
        if (rank == 0 && round > 0) steps[i].push_back(step);
      }
    }
  });
  std::cout << "hidden " << options.hidden << ", " << options.layers << " layers, vocabulary " << options.vocabulary
            << ", 2 ranks (" << options.layout << ") of " << options.length << " tokens, "
            << with_commas(num_parameters(model)) << " parameters; buckets:" << buckets << "\n"
            << "backward from the first bucket to the last takes " << format_seconds(backward) << "; the link ("
            << link.to_string() << ") is busy " << fixed(100 * options.share, 0) << "% of that\n\n"
            << "                          step ms    busy ms  exposed but last   exposed last      skew\n";
  print_line("no link", median(undisturbed(steps[0])));
  print_line("link, overlap", median(undisturbed(steps[1])));
  print_line("link, no overlap", median(undisturbed(steps[2])));
  print_timeline(undisturbed(steps[1]));
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Gradient traffic behind an emulated link: what backward hides of it");
  app.add_option("--hidden", options.hidden, "Hidden size, a multiple of 64")->capture_default_str();
  app.add_option("--features", options.features, "Features of the MLP")->capture_default_str();
  app.add_option("--layers", options.layers, "Layers")->capture_default_str();
  app.add_option("--vocabulary", options.vocabulary, "Vocabulary rows")->capture_default_str();
  app.add_option("--tokens", options.length, "Tokens per rank and step")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Measured rounds; the fastest quarter counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--share", options.share, "Of backward's time that the link is busy")->capture_default_str();
  app.add_option("--bucket-bytes", options.bucket_bytes, "Gradient bytes of a bucket")->capture_default_str();
  app.add_option("--layout", options.layout, "data=2 or data=2:zero1")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  octavo::run(options);
}
