// A short training run whose every number is collected, on any layout: what proofs compare.
#pragma once

#include <vector>

#include "octavo/dataset/batch_source.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/proof/report.h"
#include "octavo/train/model_source.h"
#include "octavo/train/rank_session.h"
#include "octavo/train/trainer.h"

namespace octavo {

struct TrainingRun {
  std::vector<double> losses;          // before each step, and after the last: num_steps + 1
  std::vector<double> gradient_norms;  // of each step
  NamedTensors gradients;              // of the first step, in checkpoint order
  NamedTensors quietest;        // on request: per entry the smallest over the steps of |gradient| / largest entry
  NamedTensors weights;         // after the last step
  std::vector<int> idle_ranks;  // that had no sequence in a batch
  bool replicas_agree = true;   // every rank ended with the same bits
};

struct TrainingRunOptions {
  Layout layout;
  ElementType compute = ElementType::Float32;
  TrainerConfig trainer;
  SessionOptions session;  // num_ranks is taken from the layout
  std::int64_t num_steps = 3;
  bool collect_quietest = false;
};

/// Every step takes the batch of step 0 if `same_batch`, else its own. The numbers are collected on rank 0; where ranks
/// are processes, the others get an empty run.
TrainingRun run_training(const ModelSource& model, const BatchSource& batches, const TrainingRunOptions& options,
                         bool same_batch);

/// The same within a session, for one rank: rank 0 gets the numbers. Collective.
TrainingRun train_in(RankSession& session, const ModelSource& model, const BatchSource& batches,
                     const TrainingRunOptions& options, bool same_batch);

}  // namespace octavo
