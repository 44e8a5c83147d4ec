#include "octavo/parallel/fold/fold_sequence.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"
#include "parallel/fold/token_map.h"
#include "parallel/position_tables.h"

namespace octavo {
namespace {

/// Keys and values of one group of heads: [2, T, U, D] of each rank, in the order of the ranks, on the wire.
class FoldKeyValues final : public KeyValueExchange {
 public:
  FoldKeyValues(Communicator& fold, const TokenMap& map, const at::Tensor& k, const at::Tensor& v)
      : fold_(fold), map_(map), parts_(at::empty({fold.size(), 2, k.size(0), k.size(1), k.size(2)}, k.options())) {
    const at::Tensor own = parts_.select(0, fold.index());
    own.select(0, 0).copy_(k);
    own.select(0, 1).copy_(v);
    gathering_ = fold.all_gather(parts_, own, Purpose::KeysValues);
  }

  std::pair<at::Tensor, at::Tensor> gathered() override {
    if (parts_.defined()) {
      gathering_.wait();
      const CategoryScope scope(MemoryCategory::Workspace);
      keys_values_ = at::empty({2, map_.num_positions(), parts_.size(3), parts_.size(4)}, parts_.options());
      for (const ChunkPlace& chunk : map_.chunks()) {
        keys_values_.narrow(1, chunk.there, chunk.size)
            .copy_(parts_.select(0, chunk.owner).narrow(1, chunk.here, chunk.size));
      }
      parts_.reset();
    }
    return {keys_values_.select(0, 0), keys_values_.select(0, 1)};
  }

  std::pair<at::Tensor, at::Tensor> send_back(at::Tensor dk, at::Tensor dv) override {
    keys_values_.reset();
    const CategoryScope scope(MemoryCategory::Workspace);
    const std::int64_t units = dk.size(1), width = dk.size(2);
    const at::Tensor parts = at::empty({fold_.size(), 2, map_.num_held(), units, width}, dk.options());
    for (const ChunkPlace& chunk : map_.chunks()) {
      const at::Tensor target = parts.select(0, chunk.owner).narrow(1, chunk.here, chunk.size);
      target.select(0, 0).copy_(dk.narrow(0, chunk.there, chunk.size));
      target.select(0, 1).copy_(dv.narrow(0, chunk.there, chunk.size));
    }
    const at::Tensor own = at::empty({2, map_.num_held(), units, width}, dk.options());
    returning_ = fold_.reduce_scatter(own, parts, Purpose::KeysValues);
    return {own.select(0, 0), own.select(0, 1)};
  }

  void finish() override { returning_.wait(); }

 private:
  Communicator& fold_;
  const TokenMap& map_;
  at::Tensor parts_;        // until they are in order
  at::Tensor keys_values_;  // [2, S, U, D]
  Pending gathering_, returning_;
};

class FoldSequence final : public SequenceContext {
 public:
  FoldSequence(Communicator& fold, TokenOrder order, const std::vector<std::int64_t>& lengths,
               const at::TensorOptions& options, bool overlap)
      : fold_(fold),
        overlap_(overlap),
        map_({order, fold.size()}, lengths),
        tables_(map_.num_held(), positions(map_, fold.index()), options) {
    for (const ChunkPlace& chunk : map_.chunks()) {
      if (chunk.owner != fold.index() || chunk.size == 0) continue;
      pieces_.push_back({chunk.here, chunk.size, chunk.sequence_there, chunk.begin + chunk.size, /*causal=*/true});
    }
  }

  at::Tensor cut(const at::Tensor& values, std::int64_t fill) const override {
    const at::Tensor held = at::full({map_.num_held()}, fill, values.options());
    for (const ChunkPlace& chunk : map_.chunks()) {
      if (chunk.owner != fold_.index()) continue;
      held.narrow(0, chunk.here, chunk.tokens).copy_(values.narrow(0, chunk.first_token, chunk.tokens));
    }
    return held;
  }

  at::Tensor whole(const at::Tensor& x) override {
    const at::Tensor parts = at::empty({fold_.size(), x.size(0), x.size(1)}, x.options());
    fold_.all_gather(parts, x.contiguous(), Purpose::Activations).wait();
    const at::Tensor all = at::empty({map_.num_tokens(), x.size(1)}, x.options());
    for (const ChunkPlace& chunk : map_.chunks()) {
      all.narrow(0, chunk.first_token, chunk.tokens)
          .copy_(parts.select(0, chunk.owner).narrow(0, chunk.here, chunk.tokens));
    }
    return all;
  }

  const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) override {
    return tables_.rope(spec, head_dim);
  }

  std::unique_ptr<KeyValueExchange> exchange(const at::Tensor& k, const at::Tensor& v) override {
    return std::make_unique<FoldKeyValues>(fold_, map_, k, v);
  }

  bool exchange_takes_time() const override { return overlap_; }
  const std::vector<ops::AttentionPiece>& pieces() const override { return pieces_; }

 private:
  static std::vector<PositionRun> positions(const TokenMap& map, int index) {
    std::vector<PositionRun> runs;
    for (const ChunkPlace& chunk : map.chunks()) {
      if (chunk.owner == index) runs.push_back({chunk.here, chunk.begin, chunk.size});
    }
    return runs;
  }

  Communicator& fold_;
  const bool overlap_;
  const TokenMap map_;
  PositionTables tables_;
  std::vector<ops::AttentionPiece> pieces_;
};

}  // namespace

std::unique_ptr<SequenceContext> make_fold_sequence(Communicator& fold, TokenOrder order,
                                                    const std::vector<std::int64_t>& lengths,
                                                    const at::TensorOptions& options, bool overlap) {
  return std::make_unique<FoldSequence>(fold, order, lengths, options, overlap);
}

}  // namespace octavo
