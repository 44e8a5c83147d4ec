#include "octavo/proof/training_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "octavo/parallel/row_reader.h"

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

/// Brings everything to index 0 of the world. Collective.
void collect(const ParamStore& store, StoredValues values, Communicator& world, NamedTensors& into) {
  RowReader reader(store, world);
  if (world.index() != 0) return reader.serve();
  for (std::size_t i = 0; i < into.names.size(); ++i) {
    reader.read(values, store.table().parameters()[i], 0, into.values[i]);
  }
  reader.finish();
}

/// Whether all ranks that hold an element hold the same bits of it. Collective.
bool replicas_agree(const ParamStore& store, Communicator& world) {
  bool agree = true;
  for (const Parameter& parameter : store.table().parameters()) {
    const at::Tensor expected = at::zeros({parameter.elements()}, at::kDouble);
    const std::span<double> rows(expected.data_ptr<double>(), static_cast<std::size_t>(parameter.elements()));
    store.read_primary_rows(store.weights(), parameter, 0, rows);
    world.all_reduce(expected, Purpose::Control).wait();
    std::vector<double> own(rows.begin(), rows.end());
    store.read_rows(store.weights(), parameter, 0, own);
    agree = agree && std::equal(own.begin(), own.end(), rows.begin());
  }
  const at::Tensor differing = at::full({1}, agree ? 0 : 1, at::kLong);
  world.all_reduce(differing, Purpose::Control).wait();
  return differing.item<std::int64_t>() == 0;
}

/// Lowers `quietest` to the entries of `gradients` over the largest of them.
void add_quietest(const NamedTensors& gradients, NamedTensors& quietest) {
  const double largest = std::max(std::numeric_limits<double>::min(), largest_of_all(gradients));
  const bool is_first = quietest.names.empty();
  if (is_first) quietest = gradients;
  for (std::size_t i = 0; i < gradients.values.size(); ++i) {
    for (std::size_t j = 0; j < gradients.values[i].size(); ++j) {
      const double share = std::abs(gradients.values[i][j]) / largest;
      quietest.values[i][j] = is_first ? share : std::min(quietest.values[i][j], share);
    }
  }
}

std::vector<int> idle_ranks(const Layout& layout, const BatchSource& batches) {
  std::vector<int> idle;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const int data_index = layout.mesh.index(rank, Axis::Data);
    if (sequences_of(layout, batches.batch_size(), data_index).empty()) idle.push_back(rank);
  }
  return idle;
}

}  // namespace

TrainingRun train_in(RankSession& session, const ModelSource& model, const BatchSource& batches,
                     const TrainingRunOptions& options, bool same_batch) {
  const ParamTable table(model.spec());
  const int rank = session.world.rank();
  ParamStore store(table, place(table, options.layout, rank), options.compute, at::kCPU, /*for_training=*/true);
  store.load(model.rows());
  Trainer trainer(model.spec(), options.layout, session.world, store, options.trainer);
  Communicator& world = *trainer.groups().world;
  TrainingRun run;
  run.gradients = run.weights = empty_tensors(table);
  for (std::int64_t step = 0; step <= options.num_steps; ++step) {
    StepReport report = trainer.compute_gradients(batches, same_batch ? 0 : step);
    report.step = step;
    report.learning_rate = options.trainer.schedule.learning_rate(step);
    run.losses.push_back(report.loss);
    if (step == options.num_steps) break;
    run.gradient_norms.push_back(report.gradient_norm);
    if (step == 0) collect(store, StoredValues::Gradients, world, run.gradients);
    if (options.collect_quietest) {
      NamedTensors gradients = empty_tensors(table);
      collect(store, StoredValues::Gradients, world, gradients);
      add_quietest(gradients, run.quietest);
    }
    trainer.apply_update(report);
  }
  collect(store, StoredValues::Weights, world, run.weights);
  run.replicas_agree = replicas_agree(store, world);
  run.idle_ranks = idle_ranks(options.layout, batches);
  return run;
}

TrainingRun run_training(const ModelSource& model, const BatchSource& batches, const TrainingRunOptions& options,
                         bool same_batch) {
  TrainingRun result;
  SessionOptions session_options = options.session;
  session_options.num_ranks = options.layout.world_size();
  run_session(session_options, [&](RankSession& session) {
    TrainingRun run = train_in(session, model, batches, options, same_batch);
    if (session.world.rank() == 0) result = std::move(run);
  });
  return result;
}

}  // namespace octavo
