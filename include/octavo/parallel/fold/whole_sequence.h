// Tokens that are brought together from all ranks of the fold axis, for the units that a rank computes: its attention
// finds keys and values where they are needed, and nothing moves but the tokens (fold_exchange.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/layout/token_spans.h"
#include "octavo/parallel/fold/position_order.h"

namespace octavo {

/// Sequences of `lengths` tokens, one after another; every one attends causally to itself. T of the interface is all S
/// positions of the cut, in `order`; those of no token come behind the tokens of their sequence, so that no token sees
/// them. whole() is local. Keys and values meet in the order of the sequences alone: exchange() and pieces() of another
/// are an InternalError, and so is rope(). `options`: dtype and device of the activations.
std::unique_ptr<SequenceContext> make_whole_sequence(const TokenCut& cut, const std::vector<std::int64_t>& lengths,
                                                     PositionOrder order, const at::TensorOptions& options);

}  // namespace octavo
