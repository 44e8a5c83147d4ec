// One rank's training step: micro-batches forward and backward, gradients summed over ranks, clipping, update.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "octavo/comm/world.h"
#include "octavo/dataset/batch_source.h"
#include "octavo/layout/layout.h"
#include "octavo/models/decoder.h"
#include "octavo/parallel/data/gradient_reducer.h"
#include "octavo/train/optimizer.h"
#include "octavo/train/schedule.h"

namespace octavo {

struct TrainerConfig {
  std::int64_t micro_batch = 1;  // sequences that one rank takes through the model at once, >= 1
  StashPolicy stash;
  AdamWConfig adamw;
  Schedule schedule;
  std::optional<double> clip_norm = 1.0;  // gradients times min(1, clip / (norm + 1e-6)); absent: no clipping
  bool overlap = true;                    // what travels does so while something is computed
};

struct StepReport {
  std::int64_t step;
  double loss;           // mean over the labelled tokens of all ranks
  double gradient_norm;  // before clipping
  double learning_rate;
  std::int64_t num_labels;      // of all ranks
  std::int64_t sequences_here;  // that this rank took
};

class Trainer {
 public:
  /// Collective: makes the layout's groups of `world`. `store` must be for training, unless only evaluate() is
  /// called; all references must outlive this. After an exception in a step the trainer is not usable any more.
  Trainer(const ModelSpec& model, const Layout& layout, World& world, ParamStore& store, const TrainerConfig& config);

  /// Gradients of the batch of `step`, summed over all ranks, in the store (ZeRO 1: its shards), and the
  /// loss and norm; no update. Collective. Throws CheckFailed if loss or norm is not finite, naming step, rank and the
  /// first bad tensor; UsageError if the batch has no label. On the meta device loss and norm are 0.
  StepReport compute_gradients(const BatchSource& batches, std::int64_t step);
  /// The update that belongs to it. Collective under ZeRO 1.
  void apply_update(const StepReport& report);
  StepReport step(const BatchSource& batches, std::int64_t step);

  /// Mean loss over the labelled tokens of steps [0, num_steps) of `batches`. Collective. Throws UsageError if there
  /// are none, CheckFailed if the loss is not finite.
  double evaluate(const BatchSource& batches, std::int64_t num_steps);

  /// Throws CheckFailed naming the first weight tensor that holds a value that is not finite: before a model is saved.
  void check_weights() const;

  Decoder& decoder() { return decoder_; }
  RankGroups& groups() { return groups_; }

 private:
  Interval sequences_here(const BatchSource& batches) const;
  TokenBatch make_batch(const BatchSource& batches, std::int64_t step, Interval sequences) const;
  void check_finite(const StepReport& report, double local_loss, const BatchSource& batches);

  /// Of the ranks that compute the same loss, the one whose loss counts.
  bool speaks_for_tokens() const { return groups_.tensor->index() == 0; }

  World& world_;
  ParamStore& store_;
  TrainerConfig config_;
  RankGroups groups_;
  Decoder decoder_;
  GradientReducer reducer_;
  Optimizer optimizer_;
};

}  // namespace octavo
