// What `octavo train` was asked for, checked as a whole before any rank starts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "octavo/dataset/batches.h"
#include "octavo/train/model_source.h"
#include "octavo/train/trainer.h"

namespace octavo::cli {

struct TrainArguments {
  ModelOption model;
  std::string data, valid, stash = "keep", out = "octavo-model", metrics, prompt = "In the beginning";
  RankOptionsText ranks;
  std::int64_t steps = 100, sample = 0, valid_sequences = 32;
  std::optional<std::int64_t> batch, sequence_length, micro_batch, warmup, valid_every;
  double learning_rate = 1e-3, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, clip = 1.0, temperature = 0.7;
  std::optional<double> min_learning_rate;
  std::uint64_t seed = 0;
  bool no_overlap = false, json_output = false;
};

/// Everything that the ranks share.
struct TrainJob {
  /// Throws UsageError for the first argument that is wrong, UsageError also for what the model, the data or the output
  /// folder do not allow.
  explicit TrainJob(const TrainArguments& given);

  TrainArguments arguments;
  Layout layout;
  ElementType dtype;
  SessionOptions session;
  std::int64_t batch, sequence_length, valid_every;  // as given, or by default
  TrainerConfig trainer;
  ModelSource model;
  TokenSource tokens;
  std::optional<TokenSource> valid_tokens;
  std::unique_ptr<Batches> batches;
  std::unique_ptr<ValidationBatches> valid;  // one step of it is a validation; null: none
};

}  // namespace octavo::cli
