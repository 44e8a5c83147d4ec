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

/// How a rank goes about its work, whatever its layout.
struct RunOptions {
  StashPolicy stash;
  bool overlap = true;  // what travels does so while something is computed; else it is waited for at once
};

/// The flows of all blocks, in steps that suit what is kept. Store and groups must outlive them.
std::vector<std::unique_ptr<Flow>> make_flows(ParamStore& store, RankGroups& groups, const RunOptions& options);

/// Where the tokens of one micro-batch of sequences of `lengths` tokens meet. The groups must outlive it.
std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, RankGroups& groups,
                                               const std::vector<std::int64_t>& lengths, const RunOptions& options);

/// Where its `num_tokens` tokens meet units that other ranks hold. The groups must outlive it.
std::unique_ptr<UnitExchange> make_exchange(RankGroups& groups, std::int64_t num_tokens);

}  // namespace octavo
