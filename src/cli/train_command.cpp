// octavo train: from random or given weights, on a token file, to a Hugging Face folder.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/fold_report.h"
#include "cli/progress.h"
#include "cli/train_job.h"
#include "cli/train_summary.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/comm/gather_bytes.h"
#include "octavo/infer/sample.h"
#include "octavo/plan/traffic.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"
#include "octavo/train/matmul_peak.h"
#include "octavo/train/model_source.h"
#include "octavo/train/trainer.h"

namespace octavo::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string readable(const std::vector<std::int64_t>& tokens) {
  std::string text;
  for (const std::int64_t id : tokens) {
    const auto byte = static_cast<unsigned char>(id);
    text += (id < 256 && (byte >= 32 || byte == '\n')) ? static_cast<char>(byte) : '?';
  }
  return text;
}

/// What one rank does. Rank 0 speaks.
class RankRun {
 public:
  RankRun(TrainJob& job, const ParamTable& table, RankSession& session, TrainSummary& summary)
      : job_(job),
        session_(session),
        summary_(summary),
        rank_(session.world.rank()),
        store_(table, place(table, job.layout, rank_), job.dtype, at::kCPU, /*for_training=*/true),
        trainer_(job.model.spec(), job.layout, session.world, store_, job.trainer),
        progress_(job.arguments.steps, rank_ != 0 || job.arguments.json_output) {}

  void run() {
    store_.load(job_.model.rows());
    trainer_.groups().world->barrier();
    // As many ranks as have a core of their own: more would disturb each other and find less than the machine has.
    const int measuring = std::max(1, num_cores() / job_.session.threads_per_rank);
    const std::optional<Launch>& launch = job_.session.launch;
    if ((launch ? rank_ % launch->ranks_on_machine : rank_) < measuring) {
      const ChargeTo nobody(nullptr);  // a yardstick is no part of the run's memory
      own_.matmul_peak = measure_matmul_peak(job_.dtype);
    }
    trainer_.groups().world->barrier();
    if (rank_ == 0) summary_.startup_seconds = seconds_since(summary_.start);
    validate(0);
    session_.world.exchange_times();
    session_.memory.reset_peak();
    session_.world.ledger().reset();
    for (std::int64_t step = 0; step < job_.arguments.steps; ++step) take_step(step);
    progress_.finish();
    session_.world.exchange_times();
    own_.peak = session_.memory.peak();
    own_.moved = session_.world.ledger().rows();
    for (const std::string& bytes : gather_bytes(*trainer_.groups().world, to_bytes(own_), 0)) {
      summary_.ranks.push_back(rank_summary_from(bytes));
    }
    finish();
  }

 private:
  void take_step(std::int64_t step) {
    const auto begin = Clock::now();
    const StepReport report = trainer_.step(*job_.batches, step);
    if (report.sequences_here == 0) own_.idle = true;
    if (rank_ == 0) {
      const double seconds = seconds_since(begin);
      summary_.step_seconds.push_back(seconds);
      summary_.losses.push_back(report.loss);
      progress_.update(step + 1, cat("loss ", fixed(report.loss, 4), "  norm ", fixed(report.gradient_norm, 2), "  ",
                                     with_commas(static_cast<std::int64_t>(tokens_per_step() / seconds)), " tokens/s"));
      write_metrics(report, seconds);
    }
    session_.world.exchange_times();
    if ((step + 1) % job_.valid_every == 0 || step + 1 == job_.arguments.steps) validate(step + 1);
  }

  void validate(std::int64_t step) {
    if (!job_.valid) return;
    const double loss = trainer_.evaluate(*job_.valid, 1);
    if (rank_ != 0) return;
    summary_.valid_losses.emplace_back(step, loss);
    progress_.note(
        cat("  validation after step ", step, ": loss ", fixed(loss, 4), ", perplexity ", fixed(std::exp(loss), 2)));
  }

  void write_metrics(const StepReport& report, double seconds) {
    if (job_.arguments.metrics.empty()) return;
    if (!metrics_.is_open()) metrics_.open(job_.arguments.metrics, std::ios::app);
    metrics_ << nlohmann::json{{"step", report.step},
                               {"loss", report.loss},
                               {"gradient_norm", report.gradient_norm},
                               {"learning_rate", report.learning_rate},
                               {"seconds", seconds},
                               {"tokens_per_second", tokens_per_step() / seconds}}
                    .dump()
             << std::endl;
    if (!metrics_) throw UsageError(cat("[cli] --metrics ", job_.arguments.metrics, " cannot be written"));
  }

  void finish() {
    trainer_.check_weights();
    save_model(job_.arguments.out, job_.model, store_, *trainer_.groups().world);
    // A replica of the model writes the sample; its ranks need each other for it.
    if (job_.arguments.sample == 0 || trainer_.groups().data->index() != 0) return;
    std::vector<std::int64_t> prompt(job_.arguments.prompt.begin(), job_.arguments.prompt.end());
    for (std::int64_t& id : prompt) id &= 0xff;
    const std::vector<std::int64_t> text = sample(trainer_.decoder(), prompt,
                                                  {.num_tokens = job_.arguments.sample,
                                                   .temperature = job_.arguments.temperature,
                                                   .seed = job_.arguments.seed,
                                                   .max_context = job_.sequence_length});
    if (rank_ == 0) summary_.sample = readable(text);
  }

  double tokens_per_step() const { return static_cast<double>(job_.batch) * static_cast<double>(job_.sequence_length); }

  TrainJob& job_;
  RankSession& session_;
  TrainSummary& summary_;  // touched by rank 0 alone
  RankSummary own_;
  int rank_;
  ParamStore store_;
  Trainer trainer_;
  Progress progress_;
  std::ofstream metrics_;
};

StepShape step_shape(const TrainJob& job, std::int64_t batch) {
  return {.batch = batch,
          .sequence_length = job.sequence_length,
          .micro_batch = job.trainer.micro_batch,
          .compute = job.dtype,
          .recomputes = job.trainer.stash.kind == StashPolicy::Kind::Recompute,
          .reads_in_place = !job.session.launch && !job.session.link,
          .shares_memory = !job.session.launch};
}

/// What the steps and validations of a run move, per rank, mean over the ranks.
std::vector<LedgerRow> predicted_ledger(const TrainJob& job, const ParamTable& table, std::size_t num_validations) {
  std::vector<RankSummary> ranks(job.layout.world_size());
  for (int rank = 0; rank < job.layout.world_size(); ++rank) {
    std::vector<LedgerRow>& moved = ranks[rank].moved;
    add_rows(moved, predict_step_traffic(table, job.layout, step_shape(job, job.batch), rank), job.arguments.steps);
    if (!job.valid) continue;
    const StepShape validation = step_shape(job, job.valid->batch_size());
    add_rows(moved, predict_evaluation_traffic(table, job.layout, validation, rank, 1),
             static_cast<std::int64_t>(num_validations));
  }
  return mean_ledger(ranks);
}

int run_train(const TrainArguments& arguments) {
  TrainSummary summary;
  summary.start = Clock::now();
  TrainJob job(arguments);
  const ParamTable table(job.model.spec());
  const std::vector<std::string> misfits = misfit_notes(table, job.layout, job.dtype);
  const FoldWork fold_step = fold_work(
      step_shape(job, job.batch), shown_positions(job.layout, job.batch, job.sequence_length, job.trainer.micro_batch),
      /*training=*/true);
  summary.layout = job.layout.to_string();
  summary.fold = fold_json(table, job.layout, fold_step, job.sequence_length).dump();
  summary.stash = job.trainer.stash.to_string();
  summary.dtype = element_type_name(job.dtype);
  summary.num_parameters = num_parameters(job.model.spec());
  summary.tokens_per_step = job.batch * job.sequence_length;
  const std::vector<std::int64_t> lengths(job.batch, job.sequence_length);
  summary.flops_per_step = training_flops(job.model.spec(), lengths);
  summary.out = job.arguments.out;
  if (!arguments.json_output && job.session.has_rank_0()) {
    std::cout << job.model.spec().model_type << ", " << with_commas(summary.num_parameters) << " parameters, "
              << (job.model.has_weights() ? "weights from " + arguments.model.path : std::string("random weights"))
              << "; " << job.layout.world_size() << (job.layout.world_size() == 1 ? " rank" : " ranks")
              << (summary.layout.empty() ? "" : " (" + summary.layout + ")") << ", " << summary.dtype << ", "
              << job.arguments.steps << " steps of " << job.batch << " x " << job.sequence_length << " tokens, stash "
              << summary.stash << std::endl;
    const std::string shared = oversubscription(job.session);
    if (!shared.empty()) std::cout << "note: " << shared << std::endl;
    for (const std::string& note : misfits) std::cout << "note: " << note << std::endl;
    for (const std::string& note : fold_notes(table, job.layout, fold_step, job.sequence_length))
      std::cout << note << std::endl;
    if (job.tokens.vocab_size() == 256 && job.model.has_weights()) {
      std::cout << "note: " << arguments.data
                << " is read as bytes (256 ids); for a model with a tokenizer make a token file with "
                << "tools/tokenize.py" << std::endl;
    }
  }
  run_session(job.session, [&](RankSession& session) { RankRun(job, table, session, summary).run(); });
  if (!job.session.has_rank_0()) return 0;
  // The validation before the first step is not among what was booked.
  summary.predicted = predicted_ledger(job, table, job.valid ? summary.valid_losses.size() - 1 : 0);
  std::cout << (arguments.json_output ? summary.to_json() : summary.to_text());
  return 0;
}

}  // namespace

void add_train_command(CLI::App& program, Runner& run) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = program.add_subcommand("train", "Train a model on a token file and write a Hugging Face folder");
  TrainArguments& a = *arguments;
  add_model_option(*command, a.model);
  command->add_option("--data", a.data, "Text (read as bytes) or a token file (.bin, .npy)")->required();
  command->add_option("--valid", a.valid, "A token file for validation");
  command->add_option("--valid-every", a.valid_every, "Steps between validations; default: a quarter of the run");
  command->add_option("--valid-sequences", a.valid_sequences, "Sequences of the validation file to use at most")
      ->capture_default_str();
  command->add_option("--out", a.out, "The folder to write at the end")->capture_default_str();
  command->add_option("--steps", a.steps, "Optimizer steps")->capture_default_str();
  command->add_option("--batch", a.batch, "Sequences per step over all ranks; default: 4 per rank");
  command->add_option("--seq-len", a.sequence_length, "Tokens per sequence; default 256");
  command->add_option("--micro-batch", a.micro_batch, "Sequences a rank takes at once; default: all of its own");
  command->add_option("--stash", a.stash, "What forward keeps: keep, recompute, or values: attention,qkv,gate_up")
      ->capture_default_str();
  command->add_option("--lr", a.learning_rate, "Peak learning rate")->capture_default_str();
  command->add_option("--min-lr", a.min_learning_rate, "Learning rate of the last step; default: a tenth of the peak");
  command->add_option("--warmup", a.warmup, "Steps of linear warm-up; default: a tenth of the run, at most 100");
  command->add_option("--weight-decay", a.weight_decay, "Of matrices; vectors do not decay")->capture_default_str();
  command->add_option("--beta1", a.beta1, "AdamW")->capture_default_str();
  command->add_option("--beta2", a.beta2, "AdamW")->capture_default_str();
  command->add_option("--eps", a.eps, "AdamW")->capture_default_str();
  command->add_option("--clip", a.clip, "Largest global gradient norm; 0: no clipping")->capture_default_str();
  command->add_option("--seed", a.seed, "Of random weights, the order of the data and the sample")
      ->capture_default_str();
  command->add_option("--metrics", a.metrics, "A file that gets a JSON line per step");
  command->add_option("--sample", a.sample, "Tokens of generated text at the end")->capture_default_str();
  command->add_option("--prompt", a.prompt, "What the sample starts from, as bytes")->capture_default_str();
  command->add_option("--temperature", a.temperature, "Of the sample; 0: the most likely token")->capture_default_str();
  command->add_flag(
      "--no-overlap", a.no_overlap,
      "Wait for what travels where it is sent, instead of computing meanwhile: to see what that is worth");
  add_rank_options(*command, a.ranks);
  add_json_option(*command, a.json_output);
  command->footer(
      "Examples:\n"
      "  octavo train --model config.json --data text.txt --valid other.txt --layout data=4 --steps 200\n"
      "  octavo train --model DIR --data tokens.bin --layout data=2:zero1 --dtype bf16 --stash recompute\n"
      "  octavo train --config run.toml --steps 1000");
  command->callback([arguments, &run] { run = [arguments] { return run_train(*arguments); }; });
}

}  // namespace octavo::cli
