// Which flows, sequences and exchanges a layout gives to blocks: the one place, with surroundings.h, where axes are
// chosen.
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

/// The flows of all blocks, in steps that suit what is kept.
struct ModelFlows {
  std::vector<std::unique_ptr<Flow>> of_tokens;  // where tokens stay where they live
  std::vector<std::unique_ptr<Flow>> of_units;   // where the fold axis brings them to the units; empty without one
};

/// Store and groups must outlive them.
ModelFlows make_flows(ParamStore& store, RankGroups& groups, const RunOptions& options);

/// Where the tokens of one micro-batch of sequences of `lengths` tokens meet, which stay. The groups must outlive it.
std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, RankGroups& groups,
                                               const std::vector<std::int64_t>& lengths, const RunOptions& options);

/// Where its `num_tokens` tokens meet units that other ranks hold. The groups must outlive it.
std::unique_ptr<UnitExchange> make_exchange(RankGroups& groups, std::int64_t num_tokens);

}  // namespace octavo
