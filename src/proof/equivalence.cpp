#include "octavo/proof/equivalence.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

Tolerances Tolerances::of(ElementType compute, double learning_rate) {
  switch (compute) {
    case ElementType::Float32:
      return {1e-5, 1e-5, std::max(1e-5, learning_rate / 4), 4 * 0x1p-24, 1e-5, 2 * learning_rate};
    case ElementType::Float64:
      return {1e-10, 1e-10, 1e-10, 4 * 0x1p-53, 1e-10, 1e-10};
    case ElementType::BFloat16:
      throw UsageError("[proof] bf16 proves nothing: its rounding is as large as a layout's mistake; use fp32 or fp64");
  }
  throw InternalError("[proof] unknown element type");
}

ProofReport compare_runs(const TrainingRun& run, const TrainingRun& expected, const Tolerances& limits) {
  ProofReport report;
  const auto add_scalars = [&](const std::string& first, const std::string& later, const std::vector<double>& values,
                               const std::vector<double>& wanted, double limit) {
    report.rows.push_back(compare_scalars(first, {values.front()}, {wanted.front()}, limit, true));
    if (wanted.size() == 1) return;
    report.rows.push_back(compare_scalars(later, {values.begin() + 1, values.end()}, {wanted.begin() + 1, wanted.end()},
                                          limits.later, true));
  };
  add_scalars("loss", "losses after updates", run.losses, expected.losses, limits.loss);
  add_scalars("gradient norm", "norms after updates", run.gradient_norms, expected.gradient_norms, limits.gradient);
  report.rows.push_back(
      compare_tensors("gradients", run.gradients, expected.gradients, limits.gradient, true, limits.noise));
  // A gradient's noise adds up over the terms of its sum: more than the four roundings that a zero may show.
  constexpr double kNoisySteps = 16;
  const NamedTensors* quietest = expected.quietest.names.empty() ? nullptr : &expected.quietest;
  const std::string weights = cat("weights after ", expected.gradient_norms.size(), " steps");
  for (ProofRow& row : compare_adam_weights(weights, run.weights, expected.weights, limits.weight_close,
                                            limits.weight_far, quietest, kNoisySteps * limits.noise)) {
    report.rows.push_back(std::move(row));
  }
  report.rows.push_back({"replicas differ", "", run.replicas_agree ? 0.0 : 1.0, 0, "bit for bit", run.replicas_agree});
  return report;
}

ProofReport prove_equivalence(const ModelSource& model, const BatchSource& batches, const TrainingRunOptions& options,
                              TrainingRun* many) {
  const Tolerances limits = Tolerances::of(options.compute, options.trainer.schedule.peak);
  TrainingRunOptions one = options;
  // The plainest run there is: nothing of what the options ask for beyond the numbers themselves.
  one.layout = parse_layout("");
  one.trainer.stash = {};
  one.trainer.micro_batch = batches.batch_size();
  one.trainer.overlap = false;
  one.collect_quietest = true;
  one.session.launch.reset();
  one.session.link.reset();
  TrainingRun run = run_training(model, batches, options, /*same_batch=*/false);
  if (!options.session.has_rank_0()) return {};
  const TrainingRun expected = run_training(model, batches, one, /*same_batch=*/false);
  ProofReport report = compare_runs(run, expected, limits);
  if (many != nullptr) *many = std::move(run);
  return report;
}

}  // namespace octavo
