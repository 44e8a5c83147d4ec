#include "octavo/models/decoder.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"
#include "octavo/models/catalog.h"

namespace octavo {

namespace {

at::Tensor ids_of(const TokenBatch& tokens, const MicroBatch& batch) {
  return batch.sequence.cut(tokens.ids_N, 0);
}

at::Tensor labels_of(const TokenBatch& tokens, const MicroBatch& batch) {
  constexpr std::int64_t kIgnored = -1;
  return batch.sequence.cut(tokens.labels_N, kIgnored);
}

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

std::vector<WeightTrip*> Decoder::forward_trips(const Surroundings& around, Trips& trips) const {
  std::vector<WeightTrip*> forward;
  for (int block = 0; block < head(); ++block) {
    forward.push_back(&trips.add(around.flow(block, Direction::Forward), Direction::Forward));
  }
  return forward;
}

at::Tensor Decoder::run_blocks(const TokenBatch& tokens, const Surroundings& around, std::span<WeightTrip* const> trips,
                               std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe) {
  const auto show = [&](int block, const at::Tensor& x_TH) {
    const MicroBatch& between = around.between_blocks();
    if (probe) probe(block, between.sequence.whole(between.exchange.gather(x_TH)));
  };
  at::Tensor x_TH;
  {
    const CategoryScope scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
    const MicroBatch& batch = around.batch(0, Direction::Forward);
    x_TH = embed(ids_of(tokens, batch), *trips.front(), batch.exchange);
  }
  show(0, x_TH);
  for (int i = 0; i < static_cast<int>(drivers_.size()); ++i) {
    const Pass pass{around.batch(i + 1, Direction::Forward), *trips[i + 1]};
    x_TH = drivers_[i].forward(x_TH, pass, saved != nullptr ? &(*saved)[i] : nullptr);
    trips[i]->finish();  // a block late, as peers may be
    show(i + 1, x_TH);
  }
  return x_TH;
}

at::Tensor Decoder::forward_backward(const TokenBatch& tokens, int micro_batch, double gradient_scale,
                                     const BlockDone& done) {
  const bool recomputes = options_.stash.kind == StashPolicy::Kind::Recompute;
  const Surroundings around =
      surroundings(tokens.lengths, micro_batch, recomputes ? FoldPasses::Apart : FoldPasses::Together);
  Trips trips(micro_batch);
  const std::vector<WeightTrip*> forward = forward_trips(around, trips);
  Flow& head_flow = around.flow(head(), Direction::Forward);
  std::vector<WeightTrip*> head_trips;
  for (const Direction direction : Head::directions(head_flow.num_steps())) {
    head_trips.push_back(&trips.add(head_flow, direction));
  }
  std::vector<WeightTrip*> backward(head());
  for (int block = head() - 1; block >= 0; --block) {
    backward[block] = &trips.add(around.flow(block, Direction::Backward), Direction::Backward);
  }

  forward.front()->start();
  std::vector<std::unique_ptr<Saved>> saved(drivers_.size());
  const at::Tensor x_TH = run_blocks(tokens, around, forward, &saved, nullptr);
  const MicroBatch& head_batch = around.batch(head(), Direction::Forward);
  Head::Result result =
      head_.loss_and_gradient(x_TH, labels_of(tokens, head_batch), gradient_scale, head_trips, head_batch.exchange);
  LateReturns returns(done);
  returns.add(head(), *head_trips.back());
  at::Tensor dx_TH = std::move(result.dx_TH);
  for (int i = static_cast<int>(drivers_.size()) - 1; i >= 0; --i) {
    const Pass pass{around.batch(i + 1, Direction::Backward), *backward[i + 1]};
    dx_TH = drivers_[i].backward(std::move(saved[i]), std::move(dx_TH), pass);
    returns.add(i + 1, *backward[i + 1]);
  }
  const MicroBatch& embedding_batch = around.batch(0, Direction::Backward);
  embed_backward(ids_of(tokens, embedding_batch), dx_TH, *backward.front(), embedding_batch.exchange);
  returns.add(0, *backward.front());
  returns.finish();
  return around.speaks_for_loss() ? result.loss_sum : result.loss_sum.zero_();
}

at::Tensor Decoder::loss(const TokenBatch& tokens) {
  const Surroundings around = surroundings(tokens.lengths, 0, FoldPasses::Forward);
  Trips trips(0);
  const std::vector<WeightTrip*> forward = forward_trips(around, trips);
  WeightTrip& head_trip = trips.add(around.flow(head(), Direction::Forward), Direction::Forward);
  forward.front()->start();
  const at::Tensor x_TH = run_blocks(tokens, around, forward, nullptr, nullptr);
  const MicroBatch& batch = around.batch(head(), Direction::Forward);
  const at::Tensor loss_sum = head_.loss(x_TH, labels_of(tokens, batch), head_trip, batch.exchange).loss_sum;
  return around.speaks_for_loss() ? loss_sum : loss_sum.zero_();
}

at::Tensor Decoder::hidden(const TokenBatch& tokens, const Probe& probe) {
  const Surroundings around = surroundings(tokens.lengths, 0, FoldPasses::Forward);
  Trips trips(0);
  const std::vector<WeightTrip*> forward = forward_trips(around, trips);
  forward.front()->start();
  const at::Tensor x_TH = run_blocks(tokens, around, forward, nullptr, probe);
  const std::unique_ptr<WeightTrip> trip = around.flow(head(), Direction::Forward).begin(Direction::Forward, 0);
  const at::Tensor normed_TH = head_.final_norm(x_TH, *trip);
  const MicroBatch& between = around.between_blocks();
  return between.sequence.whole(between.exchange.gather(normed_TH));
}

at::Tensor Decoder::logits(const at::Tensor& hidden_MH) {
  const Surroundings around = surroundings({hidden_MH.size(0)}, 0, FoldPasses::Forward);
  const std::unique_ptr<WeightTrip> trip = around.flow(head(), Direction::Forward).begin(Direction::Forward, 0);
  return head_.logits(hidden_MH, *trip, around.batch(head(), Direction::Forward).exchange);
}

}  // namespace octavo
