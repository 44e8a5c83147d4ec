// Blocks whose units need nobody else's activations: every rank goes through the parts of the others, each at another
// time, and the gradients of a part go round with the ranks that use it (docs/folding.md).
//
// Letters: D ranks, p this rank; a part is what one rank stores of the block. Step s has the part of rank p + s, mod D.
//   forward   steps 0, 1, .. D-1. While a step is computed the next one's part comes in: from rank p + 1, which uses it
//             now (ring), or from its owner (direct, and always where ranks share memory: it is read where it lies).
//             The last step's part goes no further.
//   backward  steps 1, .. D-1, 0: the own part comes last. The parts come in as in forward. The sum of a part's
//             gradient goes the same way, from p + 1 to p: begun by the rank before the owner, it has passed all ranks
//             when it reaches the owner. A rank makes its own term first, then adds what has come in and sends it on;
//             the owner makes its term in place. So sums have one order.
// In memory at once: parts of two other ranks and two such gradients, each of them at most the largest part.
//
// Messages of a rank: per panel D-1 lends and borrows of weights in each pass, and as many of gradients in backward.
#pragma once

#include <memory>

#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"
#include "octavo/parallel/rank_groups.h"
#include "parallel/fold/gradient_returns.h"
#include "parallel/fold/shard_line.h"

namespace octavo {

/// What all ring flows of a rank share.
struct RingShared {
  RingShared(RankGroups& groups, bool overlap, std::shared_ptr<GradientReturns> returns);

  Communicator& fold;  // weights
  Communicator& back;  // gradients
  const bool overlap;
  const bool direct;  // parts come from their owners
  ShardLine line;
  const std::shared_ptr<GradientReturns> returns;  // shared with the flows that do not go round
};

/// The flow of block `block`, for which goes_round() must hold. The store must outlive it.
std::unique_ptr<Flow> make_ring_flow(ParamStore& store, int block, std::shared_ptr<RingShared> shared);

}  // namespace octavo
