// Gradients that the tensor axis leaves partial, summed once a step: vectors that are used inside units or on cut
// tokens, and the rows that replicas of a unit hold alike.
//
// What a rank sends (mean, bytes), over the n neighbours of a sum of E elements that this rank optimizes, g bytes each:
//   one all_reduce of gradients, 2 (n-1)/n E g, in group "tensor" (vectors) or "tensor/n" (rows of replicas)
#pragma once

#include "octavo/parallel/param_store.h"
#include "octavo/parallel/rank_groups.h"

namespace octavo {

/// Packs, all-reduces and unpacks the intervals of every sum of the store's placement. Collective over their groups; to
/// be called when the data axis has done its part.
void sum_partial_gradients(ParamStore& store, RankGroups& groups);

}  // namespace octavo
