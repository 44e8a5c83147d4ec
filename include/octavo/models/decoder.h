// A decoder-only transformer: which blocks, in which order. It knows neither collectives nor model families.
// Letters: N tokens of a micro-batch, H hidden size, V vocabulary rows. What is said to be collective is so over the
// ranks that hold different units of the model and work on the same tokens; they get the same results.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "octavo/blocks/vocabulary.h"
#include "octavo/parallel/block_driver.h"
#include "octavo/parallel/catalog.h"
#include "octavo/parallel/param_store.h"
#include "octavo/parallel/rank_groups.h"
#include "octavo/parallel/surroundings.h"
#include "octavo/parallel/trips.h"

namespace octavo {

/// Sequences of `lengths` tokens one after another, the same on all ranks that work on them; N is their sum and may be
/// 0 (a rank without work).
struct TokenBatch {
  at::Tensor ids_N;     // int64, CPU
  at::Tensor labels_N;  // int64, CPU: the token that position t predicts; negative = ignored
  std::vector<std::int64_t> lengths;
};

class Decoder {
 public:
  /// `store` and `groups` must outlive this.
  Decoder(const ModelSpec& model, ParamStore& store, RankGroups& groups, const RunOptions& options);
  Decoder(const Decoder&) = delete;  // its drivers refer to it

  /// Called with each block whose gradients got their last contribution in this pass, in backward order.
  using BlockDone = std::function<void(int block)>;
  /// Called with the residual stream [N, H] after each block: the embedding is block 0.
  using Probe = std::function<void(int block, const at::Tensor& x_NH)>;

  /// Forward and backward of one micro-batch. Gradients of gradient_scale * loss sum are added to the store.
  /// Returns the loss sum over the labelled tokens that this rank speaks for: [] float64; over the ranks that cut the
  /// tokens it is that of all. Collective.
  at::Tensor forward_backward(const TokenBatch& batch, int micro_batch, double gradient_scale, const BlockDone& done);

  /// The loss sum alone. Collective.
  at::Tensor loss(const TokenBatch& batch);

  /// The residual stream after the last layer's final norm: [N, H]. Collective, also each call of the probe's block.
  at::Tensor hidden(const TokenBatch& batch, const Probe& probe = nullptr);
  /// Logits [M, V] of rows [M, H] of hidden(). Collective.
  at::Tensor logits(const at::Tensor& hidden_MH);

  int num_blocks() const { return static_cast<int>(blocks_.size()) + 2; }

 private:
  int head() const { return num_blocks() - 1; }
  Surroundings surroundings(const std::vector<std::int64_t>& lengths, int micro_batch, FoldPasses passes) {
    return {store_, groups_, flows_, lengths, micro_batch, passes, options_};
  }
  /// Of all blocks but the head.
  std::vector<WeightTrip*> forward_trips(const Surroundings& around, Trips& trips) const;
  at::Tensor run_blocks(const TokenBatch& tokens, const Surroundings& around, std::span<WeightTrip* const> trips,
                        std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe);

  ParamStore& store_;
  RankGroups& groups_;
  const RunOptions options_;
  const ModelFlows flows_;
  std::vector<std::unique_ptr<Block>> blocks_;  // between embedding and head
  std::vector<BlockDriver> drivers_;            // of blocks_
  Head head_;
};

}  // namespace octavo
