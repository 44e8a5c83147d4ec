// Tokens that are cut over the fold axis: attention of the queries held here to the keys of all.
//
// What a rank sends for a group of U KV heads of width d, over the S positions of a micro-batch on D ranks (mean,
// bytes; c = (D-1)/D, e bytes per element; folding.md 5): c 2 S U d e forward (an all_gather of keys and values), and
// backward the same twice (the all_gather again, and a reduce_scatter of their gradients). Kept or recomputed: the
// gathered ones are never kept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/comm/communicator.h"
#include "octavo/layout/token_spans.h"

namespace octavo {

/// Sequences of `lengths` tokens, one after another, each cut over the ranks of `fold`, which must outlive it; every
/// one attends causally to itself. `options`: dtype and device of the activations. `overlap`: an exchange may be
/// started a step ahead.
std::unique_ptr<SequenceContext> make_fold_sequence(Communicator& fold, TokenOrder order,
                                                    const std::vector<std::int64_t>& lengths,
                                                    const at::TensorOptions& options, bool overlap);

}  // namespace octavo
