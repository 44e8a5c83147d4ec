// A decoder-only transformer: which blocks, in which order. It knows neither collectives nor model families.
// Letters: T tokens of a micro-batch, H hidden size, V vocabulary rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "octavo/blocks/vocabulary.h"
#include "octavo/parallel/block_driver.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

/// Sequences of `lengths` tokens one after another; T is their sum and may be 0 (a rank without work).
struct TokenBatch {
  at::Tensor ids_T;     // int64, CPU
  at::Tensor labels_T;  // int64, CPU: the token that position t predicts; negative = ignored
  std::vector<std::int64_t> lengths;
};

class Decoder {
 public:
  /// `store` must outlive this.
  Decoder(const ModelSpec& model, ParamStore& store, StashPolicy stash);
  Decoder(const Decoder&) = delete;  // its drivers refer to it

  /// Called with each block whose gradients got their last contribution in this pass, in backward order.
  using BlockDone = std::function<void(int block)>;
  /// Called with the residual stream [T, H] after each block: the embedding is block 0.
  using Probe = std::function<void(int block, const at::Tensor& x_TH)>;

  /// Forward and backward of one micro-batch. Gradients of gradient_scale * loss sum are added to the store.
  /// Returns the loss sum over labelled tokens: [] float64.
  at::Tensor forward_backward(const TokenBatch& batch, int micro_batch, double gradient_scale, const BlockDone& done);

  /// The loss sum alone: [] float64.
  at::Tensor loss(const TokenBatch& batch);

  /// The residual stream after the last layer's final norm: [T, H].
  at::Tensor hidden(const TokenBatch& batch, const Probe& probe = nullptr);
  /// Logits [N, V] of rows [N, H] of hidden().
  at::Tensor logits(const at::Tensor& hidden_NH);

  int num_blocks() const { return static_cast<int>(flows_.size()); }

 private:
  at::Tensor run_blocks(const TokenBatch& batch, SequenceContext& sequence, int micro_batch,
                        std::vector<std::unique_ptr<Saved>>* saved, const Probe& probe);

  ParamStore& store_;
  StashPolicy stash_;
  std::vector<std::unique_ptr<Flow>> flows_;    // per block, embedding and head included
  std::vector<std::unique_ptr<Block>> blocks_;  // between embedding and head
  std::vector<BlockDriver> drivers_;            // of blocks_
  Head head_;
};

}  // namespace octavo
