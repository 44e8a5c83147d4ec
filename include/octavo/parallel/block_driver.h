// Runs one block forward and backward over the steps of a trip: y = x + sum over units of partial(prologue(x)).
// The stack of layers is no autograd graph; what backward needs is a value, `Saved` (design 3).
//
// How weights come to this rank is the trip's business, how tokens meet units of other ranks the exchange's; the driver
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

/// A pass of one block over a micro-batch. Its trip is finished by whoever made it.
struct Pass {
  const MicroBatch& batch;
  WeightTrip& trip;
};

class BlockDriver {
 public:
  /// `policy` says what forward keeps. Both must outlive this.
  BlockDriver(const Block& block, const StashPolicy& policy) : block_(block), policy_(policy) {}

  /// x [T, H] -> [T, H]. With `saved`, keeps there what backward needs; without (null), nothing: inference. Collective
  /// over the axes behind trip, sequence and exchange.
  at::Tensor forward(const at::Tensor& x_TH, const Pass& pass, std::unique_ptr<Saved>* saved);

  /// dy [T, H] -> dx [T, H]; may overwrite dy. Hands the weight gradients to the trip. Its steps are those of the
  /// forward trip unless only x was kept. Collective likewise.
  at::Tensor backward(std::unique_ptr<Saved> saved, at::Tensor dy_TH, const Pass& pass);

 private:
  const Block& block_;
  const StashPolicy& policy_;
};

}  // namespace octavo
