// N ranks equal one: the same three training steps on one rank and on a layout, number by number.
#pragma once

#include "octavo/proof/training_run.h"

namespace octavo {

/// Limits of design 11 for a compute type. Throws UsageError for bfloat16: rounding there is as large as what a wrong
/// layout might do, so nothing is proven in it.
struct Tolerances {
  double loss, gradient;
  double later;                     // of losses and norms after updates, which moved noise by the learning rate
  double noise;                     // of gradients, see compare_tensors(): four roundings of the compute type
  double weight_close, weight_far;  // absolute; 99.9% within close, all within far

  static Tolerances of(ElementType compute, double learning_rate);
};

/// Runs `options` on its layout, and on one rank with everything kept, no accumulation and no overlap; compares losses,
/// every gradient, the gradient norms and the weights after the last step; also that all replicas ended with the same
/// bits. `many`, if given, receives the layout's run. Where ranks are processes, rank 0 compares and the others get an
/// empty report.
ProofReport prove_equivalence(const ModelSource& model, const BatchSource& batches, const TrainingRunOptions& options,
                              TrainingRun* many = nullptr);

/// The comparison itself, of two runs at hand.
ProofReport compare_runs(const TrainingRun& run, const TrainingRun& expected, const Tolerances& limits);

}  // namespace octavo
