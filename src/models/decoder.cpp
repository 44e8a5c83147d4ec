#include "octavo/models/decoder.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"
#include "octavo/models/catalog.h"
#include "octavo/parallel/catalog.h"

namespace octavo {

Decoder::Decoder(const ModelSpec& model, ParamStore& store, StashPolicy stash)
    : store_(store), stash_(std::move(stash)), blocks_(make_blocks(model, store.table())), head_(model.norm_eps) {
  const int num_blocks = static_cast<int>(store.table().blocks().size());
  for (int block = 0; block < num_blocks; ++block) flows_.push_back(make_flow(store, block, stash_));
  for (std::size_t i = 0; i < blocks_.size(); ++i) drivers_.emplace_back(*blocks_[i], *flows_[i + 1], stash_);
}

at::Tensor Decoder::run_blocks(const TokenBatch& batch, SequenceContext& sequence, int micro_batch,
                               std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe) {
  at::Tensor x_TH;
  {
    const CategoryScope scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
    x_TH = embed(batch.ids_T, *flows_.front()->begin(Direction::Forward, micro_batch));
  }
  if (probe) probe(0, x_TH);
  for (std::size_t i = 0; i < drivers_.size(); ++i) {
    x_TH = drivers_[i].forward(x_TH, micro_batch, sequence, saved != nullptr ? &(*saved)[i] : nullptr);
    if (probe) probe(static_cast<int>(i) + 1, x_TH);
  }
  return x_TH;
}

at::Tensor Decoder::forward_backward(const TokenBatch& batch, int micro_batch, double gradient_scale,
                                     const BlockDone& done) {
  const std::unique_ptr<SequenceContext> sequence = make_sequence(store_, batch.lengths);
  std::vector<std::unique_ptr<Saved>> saved(drivers_.size());
  const at::Tensor x_TH = run_blocks(batch, *sequence, micro_batch, &saved, nullptr);

  Head::Result head = head_.loss_and_gradient(x_TH, batch.labels_T, gradient_scale,
                                              *flows_.back()->begin(Direction::Backward, micro_batch));
  done(num_blocks() - 1);
  at::Tensor dx_TH = std::move(head.dx_TH);
  for (int i = static_cast<int>(drivers_.size()) - 1; i >= 0; --i) {
    dx_TH = drivers_[i].backward(std::move(saved[i]), std::move(dx_TH));
    done(i + 1);
  }
  embed_backward(batch.ids_T, dx_TH, *flows_.front()->begin(Direction::Backward, micro_batch));
  done(0);
  return head.loss_sum;
}

at::Tensor Decoder::loss(const TokenBatch& batch) {
  const std::unique_ptr<SequenceContext> sequence = make_sequence(store_, batch.lengths);
  const at::Tensor x_TH = run_blocks(batch, *sequence, 0, nullptr, nullptr);
  return head_.loss(x_TH, batch.labels_T, *flows_.back()->begin(Direction::Forward, 0)).loss_sum;
}

at::Tensor Decoder::hidden(const TokenBatch& batch, const Probe& probe) {
  const std::unique_ptr<SequenceContext> sequence = make_sequence(store_, batch.lengths);
  const at::Tensor x_TH = run_blocks(batch, *sequence, 0, nullptr, probe);
  return head_.final_norm(x_TH, *flows_.back()->begin(Direction::Forward, 0));
}

at::Tensor Decoder::logits(const at::Tensor& hidden_NH) {
  return head_.logits(hidden_NH, *flows_.back()->begin(Direction::Forward, 0));
}

}  // namespace octavo
