#include "octavo/parallel/fold/fold_exchange.h"

#include <ATen/ATen.h>

#include <utility>

#include "octavo/ops/cross_entropy.h"
#include "parallel/fold/token_map.h"

namespace octavo {
namespace {

class FoldExchange final : public UnitExchange {
 public:
  FoldExchange(Communicator& fold, UnitExchange& tensor, TokenOrder cut, const std::vector<std::int64_t>& lengths,
               PositionOrder order)
      : fold_(fold),
        tensor_(tensor),
        map_({cut, fold.size()}, lengths),
        reorders_(order == PositionOrder::Sequences && !map_.is_ordered()) {}

  at::Tensor gather(const at::Tensor& x) override {
    at::Tensor all = at::empty({map_.num_positions(), x.size(1)}, x.options());
    fold_.all_gather(all, tensor_.gather(x), Purpose::Activations).wait();
    return reorders_ ? moved(all, PositionOrder::Ranks, PositionOrder::Sequences) : all;
  }

  at::Tensor sum(at::Tensor partial, bool counts) override {
    if (reorders_) partial = moved(partial, PositionOrder::Sequences, PositionOrder::Ranks);
    at::Tensor held = at::empty({map_.num_held(), partial.size(1)}, partial.options());
    fold_.reduce_scatter(held, std::move(partial), Purpose::Activations).wait();
    return tensor_.sum(std::move(held), counts);
  }

  void merge(ops::VocabularyMerge& state, bool counts) override {
    tensor_.merge(state, counts);
    const at::Tensor states = at::empty({fold_.size(), 2, state.lse.size(0)}, state.lse.options());
    const at::Tensor own = states.select(0, fold_.index());
    own.select(0, 0).copy_(state.lse);
    own.select(0, 1).copy_(state.picked);
    fold_.all_gather(states, own, Purpose::Loss).wait();
    ops::vocabulary_merge_states(state, states);
  }

  at::Tensor total(at::Tensor x) override {
    x = tensor_.total(std::move(x));
    fold_.all_reduce(x, Purpose::Activations).wait();
    return x;
  }

 private:
  /// Rows of all positions in another order.
  at::Tensor moved(const at::Tensor& x, PositionOrder from, PositionOrder to) const {
    at::Tensor rows = at::empty_like(x);
    for (const ChunkPlace& chunk : map_.chunks()) {
      rows.narrow(0, map_.row(chunk, to), chunk.size).copy_(x.narrow(0, map_.row(chunk, from), chunk.size));
    }
    return rows;
  }

  Communicator& fold_;
  UnitExchange& tensor_;
  const TokenMap map_;
  const bool reorders_;
};

}  // namespace

std::unique_ptr<UnitExchange> make_fold_exchange(Communicator& fold, UnitExchange& tensor, TokenOrder cut,
                                                 const std::vector<std::int64_t>& lengths, PositionOrder order) {
  return std::make_unique<FoldExchange>(fold, tensor, cut, lengths, order);
}

}  // namespace octavo
