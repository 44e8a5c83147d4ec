// Which flow and which exchanges a layout gives to a block: the one place where axes are chosen.
#pragma once

#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/ops/stash.h"
#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"
#include "octavo/parallel/rank_groups.h"

namespace octavo {

/// The flow for block `block`, in steps that suit what `stash` keeps. Store and groups must outlive it.
std::unique_ptr<Flow> make_flow(ParamStore& store, RankGroups& groups, int block, const StashPolicy& stash);

/// Where the tokens of one micro-batch of sequences of `lengths` tokens meet. The groups must outlive it.
std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, RankGroups& groups,
                                               const std::vector<std::int64_t>& lengths);

/// Where its `num_tokens` tokens meet units that other ranks hold. The groups must outlive it.
std::unique_ptr<UnitExchange> make_exchange(RankGroups& groups, std::int64_t num_tokens);

}  // namespace octavo
