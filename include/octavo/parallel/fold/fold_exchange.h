// Folding by activations: weights stay, tokens come to all ranks of the fold axis, and the sums over its units go back
// to where the tokens live.
//
// What a rank sends (mean, bytes) for S positions, those of no token included, on D ranks; c = (D-1)/D, A = S h e for
// hidden size h and e bytes per element:
//   embedding forward  reduce_scatter of A, c A       backward  all_gather of A
//   a block   forward  all_gather (normed input) and reduce_scatter (output) of A, 2 c A
//             backward all_gather twice (the input again, dy) and reduce_scatter (dx), 3 c A
//   head      all_gather (normed input) and reduce_scatter (its gradient) of A; and of log-sum-exp and picked logit of
//             each position from each rank, (D-1) 2 S g for g bytes of float32 (float64 in float64), an all_gather in
//             the head's chunks of tokens
// Beside it the tensor axis moves what it moves for the S/D positions held here (tensor/tensor_exchange.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octavo/blocks/context.h"
#include "octavo/comm/communicator.h"
#include "octavo/layout/token_spans.h"
#include "octavo/parallel/fold/position_order.h"

namespace octavo {

/// The exchange of a micro-batch of sequences of `lengths` tokens over the ranks of `fold`, around that of the tensor
/// axis, `tensor`, whose N are the positions held here. T of the interface is T of `tensor`; N all positions of the
/// cut, in `order`. Both ranks and exchange must outlive it.
std::unique_ptr<UnitExchange> make_fold_exchange(Communicator& fold, UnitExchange& tensor, TokenOrder cut,
                                                 const std::vector<std::int64_t>& lengths, PositionOrder order);

}  // namespace octavo
