#include "octavo/models/decoder.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"
#include "octavo/models/catalog.h"
#include "octavo/parallel/catalog.h"

namespace octavo {

namespace {

/// Everything around one micro-batch.
struct Surroundings {
  Surroundings(const ParamStore& store, RankGroups& groups, const TokenBatch& tokens, int index)
      : sequence(make_sequence(store, groups, tokens.lengths)),
        ids(sequence->cut(tokens.ids_N, 0)),
        exchange(make_exchange(groups, ids.size(0))),
        batch{index, *sequence, *exchange} {
    if (tokens.labels_N.defined()) labels = sequence->cut(tokens.labels_N, kIgnored);
  }

  static constexpr std::int64_t kIgnored = -1;

  std::unique_ptr<SequenceContext> sequence;
  at::Tensor ids, labels;  // of the tokens held here
  std::unique_ptr<UnitExchange> exchange;
  MicroBatch batch;
};

}  // namespace

Decoder::Decoder(const ModelSpec& model, ParamStore& store, RankGroups& groups, StashPolicy stash)
    : store_(store),
      groups_(groups),
      stash_(std::move(stash)),
      blocks_(make_blocks(model, store.table())),
      head_(model.vocab_size, model.norm_eps) {
  const int num_blocks = static_cast<int>(store.table().blocks().size());
  for (int block = 0; block < num_blocks; ++block) flows_.push_back(make_flow(store, groups, block, stash_));
  for (std::size_t i = 0; i < blocks_.size(); ++i) drivers_.emplace_back(*blocks_[i], *flows_[i + 1], stash_);
}

at::Tensor Decoder::run_blocks(const at::Tensor& ids, const MicroBatch& batch,
                               std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe) {
  const auto show = [&](int block, const at::Tensor& x_TH) {
    if (probe) probe(block, batch.sequence.whole(batch.exchange.gather(x_TH)));
  };
  at::Tensor x_TH;
  {
    const CategoryScope scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
    x_TH = embed(ids, *flows_.front()->begin(Direction::Forward, batch.index), batch.exchange);
  }
  show(0, x_TH);
  for (std::size_t i = 0; i < drivers_.size(); ++i) {
    x_TH = drivers_[i].forward(x_TH, batch, saved != nullptr ? &(*saved)[i] : nullptr);
    show(static_cast<int>(i) + 1, x_TH);
  }
  return x_TH;
}

at::Tensor Decoder::forward_backward(const TokenBatch& tokens, int micro_batch, double gradient_scale,
                                     const BlockDone& done) {
  const Surroundings around(store_, groups_, tokens, micro_batch);
  UnitExchange& exchange = *around.exchange;
  std::vector<std::unique_ptr<Saved>> saved(drivers_.size());
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, &saved, nullptr);

  Head::Result head =
      head_.loss_and_gradient(x_TH, around.labels, gradient_scale, *flows_.back(), micro_batch, exchange);
  done(num_blocks() - 1);
  at::Tensor dx_TH = std::move(head.dx_TH);
  for (int i = static_cast<int>(drivers_.size()) - 1; i >= 0; --i) {
    dx_TH = drivers_[i].backward(std::move(saved[i]), std::move(dx_TH));
    done(i + 1);
  }
  embed_backward(around.ids, dx_TH, *flows_.front()->begin(Direction::Backward, micro_batch), exchange);
  done(0);
  return head.loss_sum;
}

at::Tensor Decoder::loss(const TokenBatch& tokens) {
  const Surroundings around(store_, groups_, tokens, 0);
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, nullptr, nullptr);
  return head_.loss(x_TH, around.labels, *flows_.back(), *around.exchange).loss_sum;
}

at::Tensor Decoder::hidden(const TokenBatch& tokens, const Probe& probe) {
  const Surroundings around(store_, groups_, tokens, 0);
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, nullptr, probe);
  const at::Tensor normed_TH = head_.final_norm(x_TH, *flows_.back()->begin(Direction::Forward, 0));
  return around.sequence->whole(around.exchange->gather(normed_TH));
}

at::Tensor Decoder::logits(const at::Tensor& hidden_MH) {
  const std::unique_ptr<UnitExchange> exchange = make_exchange(groups_, hidden_MH.size(0));
  return head_.logits(hidden_MH, *flows_.back()->begin(Direction::Forward, 0), *exchange);
}

}  // namespace octavo
