#include "octavo/train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/memory/account.h"
#include "octavo/parallel/tensor/gradient_sums.h"
#include "train/bad_tensor.h"

namespace octavo {
namespace {

double read_scalar(const at::Tensor& scalar) {
  return scalar.is_meta() ? 0.0 : scalar.item<double>();
}

/// The next micro-batch of the sequences that are left; empty when none is.
Interval first_part(Interval left, std::int64_t micro_batch) {
  return {left.begin, left.begin + std::min(left.size(), micro_batch)};
}

}  // namespace

Trainer::Trainer(const ModelSpec& model, const Layout& layout, World& world, ParamStore& store,
                 const TrainerConfig& config)
    : world_(world),
      store_(store),
      config_(config),
      groups_(world, layout, store.placement()),
      decoder_(model, store, groups_, {config.stash, config.overlap}),
      reducer_(store, *groups_.data, layout.zero, config.overlap),
      optimizer_(store, config.adamw) {
  if (config.micro_batch < 1) {
    throw UsageError(cat("[train] micro-batch ", config.micro_batch, ": a rank takes at least 1 sequence at once"));
  }
}

Interval Trainer::sequences_here(const BatchSource& batches) const {
  return sequences_of(groups_.layout, batches.batch_size(), groups_.data->index());
}

TokenBatch Trainer::make_batch(const BatchSource& batches, std::int64_t step, Interval sequences) const {
  const CategoryScope scope(MemoryCategory::Data);
  const std::int64_t length = batches.sequence_length();
  TokenBatch batch;
  batch.ids_N = at::empty({sequences.size() * length}, at::kLong);
  batch.labels_N = at::empty({sequences.size() * length}, at::kLong);
  for (std::int64_t i = 0; i < sequences.size(); ++i) {
    const Sequence sequence = batches.sequence(step, sequences.begin + i);
    std::copy(sequence.tokens.begin(), sequence.tokens.end(), batch.ids_N.data_ptr<std::int64_t>() + i * length);
    std::copy(sequence.labels.begin(), sequence.labels.end(), batch.labels_N.data_ptr<std::int64_t>() + i * length);
    batch.lengths.push_back(length);
  }
  return batch;
}

StepReport Trainer::compute_gradients(const BatchSource& batches, std::int64_t step) {
  StepReport report{.step = step,
                    .loss = 0,
                    .gradient_norm = 0,
                    .learning_rate = config_.schedule.learning_rate(step),
                    .num_labels = batches.num_labels(step),
                    .sequences_here = sequences_here(batches).size()};
  world_.set_step(step);
  if (report.num_labels == 0) throw UsageError(cat("[train] step ", step, ": no token of the batch has a label"));
  const double scale = 1.0 / static_cast<double>(report.num_labels);
  store_.gradients().zero_();

  const Interval here = sequences_here(batches);
  const auto report_block = [this](int block) { reducer_.block_done(block); };
  const auto keep_accumulating = [](int) {};
  double local_loss = 0;
  int micro_batch = 0;
  for (Interval part = first_part(here, config_.micro_batch); !part.empty();
       part = first_part({part.end, here.end}, config_.micro_batch), ++micro_batch) {
    const bool last = part.end == here.end;
    const at::Tensor loss = decoder_.forward_backward(make_batch(batches, step, part), micro_batch, scale,
                                                      last ? Decoder::BlockDone(report_block) : keep_accumulating);
    local_loss += read_scalar(loss);
  }
  // A rank without sequences has zero gradients and takes part all the same.
  if (here.empty()) {
    for (int block = decoder_.num_blocks() - 1; block >= 0; --block) reducer_.block_done(block);
  }
  reducer_.finish();
  sum_partial_gradients(store_, groups_);

  at::Tensor sums = at::zeros({2}, at::TensorOptions().dtype(at::kDouble).device(store_.device()));
  if (!sums.is_meta()) {
    sums.data_ptr<double>()[0] = speaks_for_tokens() ? local_loss : 0.0;
    sums.data_ptr<double>()[1] = optimizer_.primary_sum_of_squares();
  }
  groups_.world->all_reduce(sums, Purpose::Norm).wait();
  if (!sums.is_meta()) {
    report.loss = sums.data_ptr<double>()[0] * scale;
    report.gradient_norm = std::sqrt(sums.data_ptr<double>()[1]);
    check_finite(report, local_loss, batches);
  }
  return report;
}

void Trainer::apply_update(const StepReport& report) {
  double scale = 1.0;
  if (config_.clip_norm) scale = std::min(1.0, *config_.clip_norm / (report.gradient_norm + 1e-6));
  optimizer_.update(report.step, report.learning_rate, scale);
  reducer_.gather_weights();
}

StepReport Trainer::step(const BatchSource& batches, std::int64_t step) {
  const StepReport report = compute_gradients(batches, step);
  apply_update(report);
  return report;
}

double Trainer::evaluate(const BatchSource& batches, std::int64_t num_steps) {
  at::Tensor sums = at::zeros({2}, at::TensorOptions().dtype(at::kDouble).device(store_.device()));
  const Interval here = sequences_here(batches);
  for (std::int64_t step = 0; step < num_steps; ++step) {
    for (Interval part = first_part(here, config_.micro_batch); !part.empty();
         part = first_part({part.end, here.end}, config_.micro_batch)) {
      const at::Tensor loss = decoder_.loss(make_batch(batches, step, part));
      if (speaks_for_tokens()) sums.select(0, 0).add_(loss);
    }
    if (groups_.world->index() == 0) sums.select(0, 1).add_(static_cast<double>(batches.num_labels(step)));
  }
  groups_.world->all_reduce(sums, Purpose::Loss).wait();
  if (sums.is_meta()) return 0;
  const double loss = sums.data_ptr<double>()[0] / sums.data_ptr<double>()[1];
  if (sums.data_ptr<double>()[1] == 0) throw UsageError("[train] evaluation: no token has a label");
  if (!std::isfinite(loss)) {
    throw CheckFailed(cat("[train] evaluation: the loss is ", loss, "; the weights or the data are not usable"));
  }
  return loss;
}

void Trainer::check_weights() const {
  const std::string bad = first_bad_weight(store_);
  if (bad.empty()) return;
  throw CheckFailed(cat("[train] rank ", world_.rank(), ": ", bad,
                        " are not finite after the last update; use a lower learning rate"));
}

void Trainer::check_finite(const StepReport& report, double local_loss, const BatchSource& batches) {
  if (std::isfinite(report.loss) && std::isfinite(report.gradient_norm)) return;
  const bool loss_is_bad = !std::isfinite(report.loss);
  const bool is_mine = loss_is_bad ? !std::isfinite(local_loss) : !std::isfinite(optimizer_.primary_sum_of_squares());
  const int speaker = first_index(*groups_.world, is_mine);
  const bool is_speaker = speaker == groups_.world->index();
  std::string culprit;
  if (!loss_is_bad) {
    if (is_speaker) culprit = first_bad_gradient(store_);
  } else {
    // The ranks that work on the speaker's tokens look together; the others wait until its error ends them.
    const int data_index = groups_.layout.mesh.index(std::max(speaker, 0), Axis::Data);
    const Interval here = sequences_here(batches);
    for (Interval part = first_part(here, config_.micro_batch);
         data_index == groups_.data->index() && culprit.empty() && !part.empty();
         part = first_part({part.end, here.end}, config_.micro_batch)) {
      culprit = first_bad_tensor(decoder_, store_, *groups_.replica, make_batch(batches, report.step, part));
    }
  }
  if (speaker >= 0 && !is_speaker) groups_.world->barrier();
  if (culprit.empty()) culprit = "none found (a sum overflows)";
  throw CheckFailed(cat("[train] step ", report.step, ", rank ", world_.rank(), ": the ",
                        loss_is_bad ? cat("loss is ", local_loss) : cat("gradient norm is ", report.gradient_norm),
                        "; first bad tensor: ", culprit,
                        ". Use a lower learning rate, a longer warm-up or clipping, or look at the data of this step"));
}

}  // namespace octavo
