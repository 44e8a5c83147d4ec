// Everything around one micro-batch: for each block and direction, where its weights come from and where its tokens
// meet what other ranks hold. The forms of the fold axis are chosen here, by the tokens at hand (layout/fold_choice.h).
#pragma once

#include <memory>
#include <vector>

#include "octavo/layout/fold_choice.h"
#include "octavo/parallel/block_driver.h"
#include "octavo/parallel/catalog.h"

namespace octavo {

class Surroundings {
 public:
  /// Of micro-batch `index` of sequences of `lengths` tokens, which makes `passes`. All must outlive this.
  Surroundings(const ParamStore& store, RankGroups& groups, const ModelFlows& flows,
               const std::vector<std::int64_t>& lengths, int index, FoldPasses passes, const RunOptions& options);

  Flow& flow(int block, Direction direction) const;
  const MicroBatch& batch(int block, Direction direction) const;
  /// The rows that are held here between blocks.
  const MicroBatch& between_blocks() const { return batches_.front().batch; }
  /// Whether the loss that the head finds here counts: else another rank finds it of the same tokens.
  bool speaks_for_loss() const;

 private:
  /// The owners of what a MicroBatch refers to.
  struct Batch {
    std::unique_ptr<SequenceContext> sequence;
    std::unique_ptr<UnitExchange> exchange;
    MicroBatch batch;
  };

  void add_batch(int index, std::unique_ptr<SequenceContext> sequence, std::unique_ptr<UnitExchange> exchange);
  bool brings_tokens(int block, Direction direction) const;

  const ParamTable& table_;
  RankGroups& groups_;
  const ModelFlows& flows_;
  std::vector<BlockForms> forms_;  // of every block
  std::vector<Batch> batches_;     // of tokens that stay; and of those that are brought, by PositionOrder
};

}  // namespace octavo
