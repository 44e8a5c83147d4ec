// What surroundings may change about a block: where tokens meet tokens, and where tokens meet units that other ranks
// hold. Implemented by parallel/.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "octavo/ops/attention.h"
#include "octavo/ops/cross_entropy.h"
#include "octavo/ops/key_value_exchange.h"
#include "octavo/ops/rope.h"

namespace octavo {

/// The tokens of one micro-batch as attention sees them. Letters: M tokens of the micro-batch, T tokens held here, S
/// tokens whose keys are seen.
class SequenceContext {
 public:
  virtual ~SequenceContext() = default;
  /// values [M] of every token -> those of the tokens held here [T]; `fill` at positions of no token. Local.
  virtual at::Tensor cut(const at::Tensor& values_M, std::int64_t fill) const = 0;
  /// x [T, H] -> [M, H] of every token, on every rank: for proofs and generation. Collective over the axes that cut
  /// tokens.
  virtual at::Tensor whole(const at::Tensor& x_TH) = 0;
  /// Rotary tables for the global positions of the T tokens held here.
  virtual const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) = 0;
  /// Starts to bring k, v [T, U, D] of the tokens held here to where they are seen. Collective over the axes that cut
  /// tokens. The context must outlive the exchange.
  virtual std::unique_ptr<KeyValueExchange> exchange(const at::Tensor& k, const at::Tensor& v) = 0;
  /// Whether that takes time: then a driver starts it a step ahead.
  virtual bool exchange_takes_time() const = 0;
  /// Which queries (of T) see which keys (of S).
  virtual const std::vector<ops::AttentionPiece>& pieces() const = 0;
};

/// The ranks that hold different units of the blocks and work on the tokens of one micro-batch together.
/// Letters: N tokens of the micro-batch, T rows that are held here between blocks (behind the last token they may be
/// rows of no token, which stay without effect), H hidden size. Collective over these ranks, in the order of the calls.
/// Not differentiable: drivers call it between graphs.
class UnitExchange {
 public:
  virtual ~UnitExchange() = default;
  /// x [T, H] -> [N, H], the tokens that the units here are applied to. x itself where nothing is cut.
  virtual at::Tensor gather(const at::Tensor& x_TH) = 0;
  /// The way back: partial sums [N, H] over the units of each rank, summed over the ranks: [T, H]. May be the argument,
  /// overwritten. `counts`: whether this rank's are part of the sum.
  virtual at::Tensor sum(at::Tensor partial_NH, bool counts) = 0;
  /// `state` of some vocabulary rows of each rank becomes that of all rows.
  virtual void merge(ops::VocabularyMerge& state, bool counts) = 0;
  /// The sum of x [..] over the ranks, on each of them. May be the argument, overwritten.
  virtual at::Tensor total(at::Tensor x) = 0;
};

}  // namespace octavo
