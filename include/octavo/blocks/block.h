// What a layer must say about itself so that every axis can run it. Letters: T tokens held here, H hidden size, U units
// of this block (KV heads, features: see layout/block_layout.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/layout/block_layout.h"
#include "octavo/ops/stash.h"
#include "octavo/ops/weight_ref.h"

namespace octavo {

struct BlockContext {
  SequenceContext& sequence;
  Stash& stash;
  std::shared_ptr<KeyValueSlot> keys_values;  // of a block that exchanges them; null for others
};

/// The position-wise first half of a partial: what the second half needs of it.
using Projected = std::vector<at::Tensor>;

/// Where an attention block has them in what it projects.
namespace projected_attention {
inline constexpr int kQuery = 0, kKey = 1, kValue = 2;
}  // namespace projected_attention

class Block {
 public:
  explicit Block(BlockLayout layout) : layout_(std::move(layout)) {}
  virtual ~Block() = default;
  const BlockLayout& layout() const { return layout_; }

  /// What all units share, from x [T, H]: the normed x. Local.
  virtual at::Tensor prologue(const at::Tensor& x_TH, const WeightRefs& weights) const = 0;

  /// The two halves of the contribution of `units`: [T, H]. Summed over disjoint ranges that cover [0, U) it is the
  /// block's output, before the residual. Between the halves tokens may meet tokens, so a driver can project the next
  /// step, and start its exchange, before it mixes this one. project() is differentiable in `shared`, mix() in
  /// `projected`; weight gradients leave through `weights`. Both are local; mix() reads what the driver's exchange
  /// gathered.
  virtual Projected project(const at::Tensor& shared_TH, UnitRange units, const WeightRefs& weights,
                            BlockContext& context) const = 0;
  virtual at::Tensor mix(const Projected& projected, UnitRange units, const WeightRefs& weights,
                         BlockContext& context) const = 0;

  /// Whether keys and values have to meet tokens of other ranks between the halves.
  virtual bool exchanges_keys_values() const { return false; }

 private:
  BlockLayout layout_;
};

}  // namespace octavo
