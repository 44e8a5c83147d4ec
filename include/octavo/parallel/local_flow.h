// Weights that are held where they are used: nothing moves, gradients are added where they are kept.
#pragma once

#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

/// The flow of block `block` of the store's table, over the units that its placement computes here, in `num_steps`
/// steps of about equally many. Looping over groups of units costs no arithmetic and cuts the peak of the temporaries.
/// The store must outlive it.
std::unique_ptr<Flow> make_local_flow(ParamStore& store, int block, int num_steps);

/// Steps that keep the products efficient (at least 512 features, or 256 query rows, each) for a block under recompute
/// of which `num_units` units of `share` are computed here.
int recommended_steps(const BlockLayout& block, const BlockShare& share, std::int64_t num_units);

}  // namespace octavo
