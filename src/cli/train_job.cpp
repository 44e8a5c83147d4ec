#include "cli/train_job.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of any count, so that products of two stay far from overflow

void check_count(const char* option, std::int64_t value, std::int64_t least) {
  if (value < least || value > kMost)
    throw UsageError(cat("[cli] ", option, " ", value, ": use ", least, " to ", kMost));
}

void check_count(const char* option, const std::optional<std::int64_t>& value, std::int64_t least) {
  if (value) check_count(option, *value, least);
}

/// A finite value that is at least, or above, `least`.
void check_real(const char* option, double value, double least, bool above = false) {
  if (std::isfinite(value) && (above ? value > least : value >= least)) return;
  throw UsageError(cat("[cli] ", option, " ", value, ": use a number ", above ? "above " : "of at least ", least));
}

void check(const TrainArguments& a) {
  check_count("--steps", a.steps, 1);
  check_count("--batch", a.batch, 1);
  check_count("--seq-len", a.sequence_length, 1);
  check_count("--micro-batch", a.micro_batch, 1);
  check_count("--warmup", a.warmup, 0);
  check_count("--valid-every", a.valid_every, 1);
  check_count("--valid-sequences", a.valid_sequences, 1);
  check_count("--sample", a.sample, 0);
  check_real("--lr", a.learning_rate, 0);
  if (a.min_learning_rate) check_real("--min-lr", *a.min_learning_rate, 0);
  check_real("--weight-decay", a.weight_decay, 0);
  check_real("--clip", a.clip, 0);
  check_real("--eps", a.eps, 0, /*above=*/true);
  check_real("--temperature", a.temperature, 0);
  for (const double beta : {a.beta1, a.beta2}) {
    if (!(beta >= 0 && beta < 1)) throw UsageError(cat("[cli] beta ", beta, ": use a value in [0, 1)"));
  }
  if (a.valid_every && a.valid.empty()) throw UsageError("[cli] --valid-every does nothing without --valid");
  if (a.sample > 0 && a.prompt.empty())
    throw UsageError("[cli] --prompt is empty; give at least one byte to start from");
}

TrainerConfig trainer_config(const TrainArguments& a, std::int64_t micro_batch) {
  TrainerConfig config;
  config.micro_batch = micro_batch;
  config.stash = parse_stash_policy(a.stash);
  config.adamw = {a.beta1, a.beta2, a.eps, a.weight_decay};
  config.schedule = {.peak = a.learning_rate,
                     .floor = a.min_learning_rate.value_or(a.learning_rate / 10),
                     .warmup_steps = a.warmup.value_or(std::min<std::int64_t>(100, a.steps / 10)),
                     .total_steps = a.steps};
  config.clip_norm.reset();
  if (a.clip > 0) config.clip_norm = a.clip;
  config.overlap = !a.no_overlap;
  return config;
}

}  // namespace

TrainJob::TrainJob(const TrainArguments& given)
    : arguments((check(given), given)),
      layout(given.ranks.parsed_layout()),
      dtype(given.ranks.parsed_dtype()),
      session(given.ranks.session(layout)),
      batch(given.batch.value_or(4 * layout.mesh.size(Axis::Data))),
      sequence_length(given.sequence_length.value_or(256)),
      valid_every(given.valid_every.value_or((given.steps + 3) / 4)),
      trainer(trainer_config(given, given.micro_batch.value_or(sequences_of(layout, batch, 0).size()))),
      model(given.model.path, given.seed),
      tokens(given.data) {
  check_trainable(model.spec());
  check_vocabulary(tokens, model.spec());
  batches = std::make_unique<Batches>(tokens, Batches::Config{sequence_length, batch, given.seed});
  if (!given.valid.empty()) {
    valid_tokens.emplace(given.valid);
    check_vocabulary(*valid_tokens, model.spec());
    const std::int64_t whole = ValidationBatches(*valid_tokens, sequence_length, 1).num_sequences();
    valid = std::make_unique<ValidationBatches>(*valid_tokens, sequence_length, std::min(given.valid_sequences, whole));
  }
  check_model_target(given.out);
  for (const char c : given.sample > 0 ? given.prompt : std::string()) {
    const auto id = static_cast<unsigned char>(c);
    if (id < model.spec().vocab_size) continue;
    throw UsageError(cat("[cli] --prompt holds the byte ", int{id}, ", the model has a vocabulary of ",
                         model.spec().vocab_size, "; give another --prompt, or no --sample"));
  }
  if (std::ifstream old(given.metrics); !given.metrics.empty() && old && old.peek() != '{' && old.peek() != EOF) {
    throw UsageError(cat("[cli] --metrics ", given.metrics, " exists and holds no JSON lines; choose another name"));
  }
  if (!given.metrics.empty() && !std::ofstream(given.metrics, std::ios::app)) {
    throw UsageError(cat("[cli] --metrics ", given.metrics, " cannot be written"));
  }
}

}  // namespace octavo::cli
