// Runs one block forward and backward over the steps of a flow: y = x + sum over units of partial(prologue(x)).
// The stack of layers is no autograd graph; what backward needs is a value, `Saved` (design 3).
//
// How weights come to this rank is the flow's business, how tokens meet units of other ranks the exchange's; the driver
// knows neither. Letters: T tokens held here between blocks, N tokens that the units here are applied to.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "octavo/blocks/block.h"
#include "octavo/ops/weight_ref.h"

namespace octavo {

/// What one block and micro-batch keep until backward. Opaque.
class Saved {
 public:
  virtual ~Saved() = default;
};

/// The surroundings of one micro-batch.
struct MicroBatch {
  int index;  // within the step
  SequenceContext& sequence;
  UnitExchange& exchange;
};

class BlockDriver {
 public:
  /// `policy` says what forward keeps. All three must outlive this.
  BlockDriver(const Block& block, Flow& flow, const StashPolicy& policy)
      : block_(block), flow_(flow), policy_(policy) {}

  /// x [T, H] -> [T, H]. With `saved`, keeps there what backward needs; without (null), nothing: inference. Collective
  /// over the axes behind flow, sequence and exchange.
  at::Tensor forward(const at::Tensor& x_TH, const MicroBatch& batch, std::unique_ptr<Saved>* saved);

  /// dy [T, H] -> dx [T, H]; may overwrite dy. Sends the weight gradients on their way. The micro-batch given to
  /// forward must still be alive. Collective likewise.
  at::Tensor backward(std::unique_ptr<Saved> saved, at::Tensor dy_TH);

 private:
  const Block& block_;
  Flow& flow_;
  const StashPolicy& policy_;
};

}  // namespace octavo
