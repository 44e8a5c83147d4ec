// What a layer must say about itself so that every axis can run it. Letters: T tokens held here, H hidden size, U units
// of this block (KV heads, features: see layout/block_layout.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/layout/block_layout.h"
#include "octavo/ops/stash.h"
#include "octavo/ops/weight_ref.h"

namespace octavo {

struct BlockContext {
  SequenceContext& sequence;
  Stash& stash;
};

/// The position-wise first half of a partial: what the second half needs of it.
using Projected = std::vector<at::Tensor>;

class Block {
 public:
  explicit Block(BlockLayout layout) : layout_(std::move(layout)) {}
  virtual ~Block() = default;
  const BlockLayout& layout() const { return layout_; }

  /// What all units share, from x [T, H]: the normed x. Local.
  virtual at::Tensor prologue(const at::Tensor& x_TH, const WeightRefs& weights) const = 0;

  /// The two halves of the contribution of `units`: [T, H]. Summed over disjoint ranges that cover [0, U) it is the
  /// block's output, before the residual. Between the halves tokens may meet tokens, so a driver can project the next
  /// step, and start its exchange, before it mixes this one. Differentiable in `shared` only: weight gradients leave
  /// through `weights`. Collective over the axes behind `context`, in the order of the calls.
  virtual Projected project(const at::Tensor& shared_TH, UnitRange units, const WeightRefs& weights,
                            BlockContext& context) const = 0;
  virtual at::Tensor mix(const Projected& projected, UnitRange units, const WeightRefs& weights,
                         BlockContext& context) const = 0;

  at::Tensor partial(const at::Tensor& shared_TH, UnitRange units, const WeightRefs& weights,
                     BlockContext& context) const {
    return mix(project(shared_TH, units, weights, context), units, weights, context);
  }

 private:
  BlockLayout layout_;
};

}  // namespace octavo
