// Weights where tokens are brought to them over the fold axis: every rank has its own units of a block and uses them
// where they are stored. Only rows of units that no rank stores whole travel: they are brought point to point from the
// ranks that store them, in each pass that reads them, and their gradients go back likewise.
//
// What the ranks send, all of them together, for a block of P elements of such rows (layout/fold_units.h), e bytes per
// element, g of a gradient sum: forward P e (send), backward P e and P g.
#pragma once

#include <memory>

#include "octavo/comm/communicator.h"
#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

/// The flow of block `block` of the store's table over the units that this rank of `fold` computes, in `num_steps`
/// steps of about equally many, at most one per unit. A rank without a unit goes through one step without units, and
/// takes part for the rows that it stores. Ranks differ in their number of steps: nothing else may be exchanged
/// between. `overlap` false: nothing travels ahead of its use. Both must outlive it.
std::unique_ptr<Flow> make_units_flow(ParamStore& store, Communicator& fold, int block, int num_steps, bool overlap);

}  // namespace octavo
