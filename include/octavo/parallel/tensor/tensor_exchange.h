// Tensor parallelism: ranks hold units of every block and work on the same tokens.
//
// What a rank sends for a micro-batch of N tokens over T ranks (mean, bytes; c = (T-1)/T; folding.md 5), with
// A = N h e and A' = T ceil(N/T) h e for hidden size h and e bytes per element:
//                      allreduce                    scatter
//   embedding forward  all_reduce of A, 2 c A       reduce_scatter of A', c A'
//             backward -                            all_gather of A'
//   a block   forward  all_reduce of A              all_gather (normed input) and reduce_scatter (output) of A'
//             backward all_reduce of A              all_gather twice (the input again, dy), reduce_scatter (dx)
//   head      forward  -                            all_gather of A' (normed input)
//             backward all_reduce of A              reduce_scatter of A'
//   loss      all_gather of log-sum-exp and picked logit of each token from each rank: (T-1) 2 N g, for g bytes of
//             float32 (float64 in float64), in the head's chunks of tokens
// Recomputing moves no more: a block's output is not needed again, and its input is gathered in backward either way.
#pragma once

#include <cstdint>
#include <memory>

#include "octavo/blocks/context.h"
#include "octavo/comm/communicator.h"
#include "octavo/layout/layout.h"

namespace octavo {

/// The exchange of a micro-batch of `num_tokens` over the ranks of `tensor`, which must outlive it. Under `scatter`
/// each rank holds ceil(N/T) rows between blocks, the last ones zeros that stand for no token.
std::unique_ptr<UnitExchange> make_tensor_exchange(Communicator& tensor, TensorForm form, std::int64_t num_tokens);

}  // namespace octavo
