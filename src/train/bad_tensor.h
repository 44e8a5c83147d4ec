// Where a NaN or infinity came from: the first tensor, in the order of the computation, that holds one.
#pragma once

#include <string>

#include "octavo/models/decoder.h"

namespace octavo {

/// Looks at the weights, then at the residual stream block by block for `batch`. Local.
std::string first_bad_tensor(Decoder& decoder, const ParamStore& store, const TokenBatch& batch);
/// Looks at the gradients, in backward order. Local.
std::string first_bad_gradient(const ParamStore& store);

}  // namespace octavo
