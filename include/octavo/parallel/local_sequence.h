// Sequences that this rank holds whole: keys and values are where they are needed.
#pragma once

#include <memory>
#include <vector>

#include "octavo/blocks/context.h"

namespace octavo {

/// Sequences of `lengths` tokens, one after another; every one attends causally to itself and its positions start at 0.
/// `options`: dtype and device of the activations.
std::unique_ptr<SequenceContext> make_local_sequence(const std::vector<std::int64_t>& lengths,
                                                     const at::TensorOptions& options);

}  // namespace octavo
