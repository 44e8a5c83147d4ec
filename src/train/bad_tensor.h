// Where a NaN or infinity came from: the first tensor, in the order of the computation, that holds one.
#pragma once

#include <string>

#include "octavo/models/decoder.h"

namespace octavo {

/// All local; empty if every value is finite.
std::string first_bad_weight(const ParamStore& store);
/// The weights, then the residual stream block by block for `batch`, then the logits.
std::string first_bad_tensor(Decoder& decoder, const ParamStore& store, const TokenBatch& batch);
/// The gradients that this rank is primary for, in backward order: under ZeRO 1 the others are stale.
std::string first_bad_gradient(const ParamStore& store);

}  // namespace octavo
