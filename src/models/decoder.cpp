#include "octavo/models/decoder.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"
#include "octavo/models/catalog.h"

namespace octavo {

namespace {

/// Everything around one micro-batch.
struct Surroundings {
  Surroundings(const ParamStore& store, RankGroups& groups, const TokenBatch& tokens, int index,
               const RunOptions& options)
      : sequence(make_sequence(store, groups, tokens.lengths, options)),
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

/// Backward trips whose gradients may still be on their way while the next block runs.
class LateReturns {
 public:
  explicit LateReturns(const Decoder::BlockDone& done) : done_(done) {}

  /// Block `block` has run backward, and the one before it has been given time enough.
  void add(int block, WeightTrip& trip) {
    finish();
    late_ = {block, &trip};
    if (!trip.is_returning()) finish();
  }
  void finish() {
    if (late_.trip == nullptr) return;
    late_.trip->finish();
    done_(late_.block);
    late_ = {};
  }

 private:
  struct Late {
    int block = 0;
    WeightTrip* trip = nullptr;
  };
  const Decoder::BlockDone& done_;
  Late late_;
};

}  // namespace

Decoder::Decoder(const ModelSpec& model, ParamStore& store, RankGroups& groups, const RunOptions& options)
    : store_(store),
      groups_(groups),
      options_(options),
      flows_(make_flows(store, groups, options_)),
      blocks_(make_blocks(model, store.table())),
      head_(model.vocab_size, model.norm_eps) {
  for (const std::unique_ptr<Block>& block : blocks_) drivers_.emplace_back(*block, options_.stash);
}

std::vector<WeightTrip*> Decoder::forward_trips(Trips& trips) {
  std::vector<WeightTrip*> forward;
  for (int block = 0; block < num_blocks() - 1; ++block) {
    forward.push_back(&trips.add(*flows_[block], Direction::Forward));
  }
  return forward;
}

at::Tensor Decoder::run_blocks(const at::Tensor& ids, const MicroBatch& batch, std::span<WeightTrip* const> trips,
                               std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe) {
  const auto show = [&](int block, const at::Tensor& x_TH) {
    if (probe) probe(block, batch.sequence.whole(batch.exchange.gather(x_TH)));
  };
  at::Tensor x_TH;
  {
    const CategoryScope scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
    x_TH = embed(ids, *trips.front(), batch.exchange);
  }
  show(0, x_TH);
  for (std::size_t i = 0; i < drivers_.size(); ++i) {
    x_TH = drivers_[i].forward(x_TH, {batch, *trips[i + 1]}, saved != nullptr ? &(*saved)[i] : nullptr);
    trips[i]->finish();  // a block late, as peers may be
    show(static_cast<int>(i) + 1, x_TH);
  }
  return x_TH;
}

at::Tensor Decoder::forward_backward(const TokenBatch& tokens, int micro_batch, double gradient_scale,
                                     const BlockDone& done) {
  const Surroundings around(store_, groups_, tokens, micro_batch, options_);
  UnitExchange& exchange = *around.exchange;
  Trips trips(micro_batch);
  const std::vector<WeightTrip*> forward = forward_trips(trips);
  std::vector<WeightTrip*> head_trips;
  for (const Direction direction : Head::directions(flows_.back()->num_steps())) {
    head_trips.push_back(&trips.add(*flows_.back(), direction));
  }
  std::vector<WeightTrip*> backward(num_blocks() - 1);
  for (int block = num_blocks() - 2; block >= 0; --block) {
    backward[block] = &trips.add(*flows_[block], Direction::Backward);
  }

  forward.front()->start();
  std::vector<std::unique_ptr<Saved>> saved(drivers_.size());
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, forward, &saved, nullptr);
  Head::Result head = head_.loss_and_gradient(x_TH, around.labels, gradient_scale, head_trips, exchange);
  LateReturns returns(done);
  returns.add(num_blocks() - 1, *head_trips.back());
  at::Tensor dx_TH = std::move(head.dx_TH);
  for (int i = static_cast<int>(drivers_.size()) - 1; i >= 0; --i) {
    dx_TH = drivers_[i].backward(std::move(saved[i]), std::move(dx_TH), {around.batch, *backward[i + 1]});
    returns.add(i + 1, *backward[i + 1]);
  }
  embed_backward(around.ids, dx_TH, *backward.front(), exchange);
  returns.add(0, *backward.front());
  returns.finish();
  return head.loss_sum;
}

at::Tensor Decoder::loss(const TokenBatch& tokens) {
  const Surroundings around(store_, groups_, tokens, 0, options_);
  Trips trips(0);
  const std::vector<WeightTrip*> forward = forward_trips(trips);
  WeightTrip& head_trip = trips.add(*flows_.back(), Direction::Forward);
  forward.front()->start();
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, forward, nullptr, nullptr);
  return head_.loss(x_TH, around.labels, head_trip, *around.exchange).loss_sum;
}

at::Tensor Decoder::hidden(const TokenBatch& tokens, const Probe& probe) {
  const Surroundings around(store_, groups_, tokens, 0, options_);
  Trips trips(0);
  const std::vector<WeightTrip*> forward = forward_trips(trips);
  forward.front()->start();
  const at::Tensor x_TH = run_blocks(around.ids, around.batch, forward, nullptr, probe);
  const at::Tensor normed_TH = head_.final_norm(x_TH, *flows_.back()->begin(Direction::Forward, 0));
  return around.sequence->whole(around.exchange->gather(normed_TH));
}

at::Tensor Decoder::logits(const at::Tensor& hidden_MH) {
  const std::unique_ptr<UnitExchange> exchange = make_exchange(groups_, hidden_MH.size(0));
  return head_.logits(hidden_MH, *flows_.back()->begin(Direction::Forward, 0), *exchange);
}

}  // namespace octavo
