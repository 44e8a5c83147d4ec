// Where a NaN or infinity came from: the first tensor, in the order of the computation, that holds one.
#pragma once

#include <string>

#include "octavo/models/decoder.h"

namespace octavo {

/// The lowest index of `ranks` where `is_mine` holds; -1 if nowhere. Collective.
int first_index(Communicator& ranks, bool is_mine);

/// "the weights of layers.2.mlp.gate": the first that hold a value that is not finite; empty if none does. Local.
std::string first_bad_weight(const ParamStore& store);

/// The first weights, or else the first output of `batch`, that are not finite: known to all ranks of `replica`,
/// the ranks that work on it together. Collective over them.
std::string first_bad_tensor(Decoder& decoder, const ParamStore& store, Communicator& replica, const TokenBatch& batch);

/// The last block in the order of the store (the first in backward) whose primary gradients are not finite. Local.
std::string first_bad_gradient(const ParamStore& store);

}  // namespace octavo
