// Which flow and which token exchange a layout gives to a block: the one place where axes are chosen.
#pragma once

#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/parallel/flow.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

/// The flow for block `block`, in steps that suit what `stash` keeps. The store must outlive it.
std::unique_ptr<Flow> make_flow(ParamStore& store, int block, const StashPolicy& stash);

/// The surroundings of one micro-batch of whole sequences of `lengths` tokens.
std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, const std::vector<std::int64_t>& lengths);

}  // namespace octavo
