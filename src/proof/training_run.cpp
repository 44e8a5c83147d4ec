#include "octavo/proof/training_run.h"

#include <ATen/ATen.h>

#include <array>
#include <atomic>

namespace octavo {
namespace {

NamedTensors empty_tensors(const ParamTable& table) {
  NamedTensors tensors;
  for (const Parameter& parameter : table.parameters()) {
    tensors.names.push_back(parameter.name);
    tensors.values.emplace_back(parameter.elements(), 0.0);
  }
  return tensors;
}

/// Writes what this rank is primary for; ranks write disjoint elements, so they may do it at once.
void collect(const ParamStore& store, const at::Tensor& flat, NamedTensors& into) {
  for (std::size_t i = 0; i < into.names.size(); ++i) {
    store.read_primary_rows(flat, store.table().parameters()[i], 0, into.values[i]);
  }
}

/// Whether this rank's weights are, bit for bit, the collected ones.
bool equals(const ParamStore& store, const NamedTensors& collected) {
  std::vector<double> own;
  for (std::size_t i = 0; i < collected.names.size(); ++i) {
    own = collected.values[i];
    store.read_rows(store.weights(), store.table().parameters()[i], 0, own);
    if (own != collected.values[i]) return false;
  }
  return true;
}

}  // namespace

TrainingRun run_training(const ModelSource& model, const BatchSource& batches, const TrainingRunOptions& options,
                         bool same_batch) {
  const ParamTable table(model.spec());
  TrainingRun run;
  run.gradients = empty_tensors(table);
  run.weights = empty_tensors(table);
  std::atomic<bool> agree = true;
  std::vector<char> idle(options.layout.world_size(), 0);

  SessionOptions session_options = options.session;
  session_options.num_ranks = options.layout.world_size();
  run_session(session_options, [&](RankSession& session) {
    const int rank = session.world.rank();
    ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, /*for_training=*/true);
    store.load(model.rows());
    Trainer trainer(model.spec(), options.layout, session.world, store, options.trainer);
    const std::unique_ptr<Communicator> everyone = session.world.split(options.layout.mesh, kAllAxes);
    std::vector<double> losses, norms;
    for (std::int64_t step = 0; step <= options.num_steps; ++step) {
      StepReport report = trainer.compute_gradients(batches, same_batch ? 0 : step);
      report.step = step;
      report.learning_rate = options.trainer.schedule.learning_rate(step);
      losses.push_back(report.loss);
      if (report.sequences_here == 0) idle[rank] = 1;
      if (step == options.num_steps) break;
      norms.push_back(report.gradient_norm);
      if (step == 0) collect(store, store.gradients(), run.gradients);
      trainer.apply_update(report);
    }
    collect(store, store.weights(), run.weights);
    everyone->barrier();
    if (!equals(store, run.weights)) agree = false;
    if (rank == 0) {
      run.losses = losses;
      run.gradient_norms = norms;
    }
  });
  run.replicas_agree = agree;
  for (int rank = 0; rank < options.layout.world_size(); ++rank) {
    if (idle[rank]) run.idle_ranks.push_back(rank);
  }
  return run;
}

}  // namespace octavo
