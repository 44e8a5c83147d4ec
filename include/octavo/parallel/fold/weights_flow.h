// Folding by weights: tokens stay, every rank's part of the weights comes to all of them, step after step, and the
// gradients go back to where the weights live (arXiv 2604.26294; folding.md 1 to 3).
//
// Attention, where ranks meet in each step, and blocks of fewer units than ranks: every rank uses the same units in a
// step. It has whole units: those of one rank's part where the parts end between units, else a part of them as large as
// an even cut allows; its rows come from every rank that stores some of them. Where one rank stores all of a step,
// peers read them where they lie if the ranks share memory. The other blocks go round: in a step every rank uses
// another one's part (parallel/fold/ring_flow.h).
//
// The next step's rows travel while this one's are used, and a step's gradients while the next one's are added up: so
// two steps of each are in memory at most (two of each half, layout/block_layout.h, which may belong to two blocks),
// and a rank's own are added to where they are kept.
//
// What a rank sends for a block of W matrix elements on D ranks (mean, bytes; c = (D-1)/D, e bytes per element, g of a
// gradient sum): forward c W e, backward c W e (the weights again) and c W g. Messages where all use the same units:
// one broadcast, and in backward one reduce, for each panel, step and owner of rows of the step.
#pragma once

#include <memory>
#include <vector>

#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"
#include "octavo/parallel/rank_groups.h"

namespace octavo {

/// The flows of all blocks of the store's table over the fold axis. Both must outlive them. `overlap` false: nothing
/// travels ahead of its use, and gradients are waited for where they are sent.
std::vector<std::unique_ptr<Flow>> make_weights_flows(ParamStore& store, RankGroups& groups, bool overlap);

}  // namespace octavo
