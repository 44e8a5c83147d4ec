// Model FLOPs: the arithmetic that the model itself asks for, whatever the layout. A multiply-add counts as two.
#pragma once

#include <cstdint>
#include <span>

#include "octavo/base/units.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// FLOPs of one forward pass over sequences of these lengths (tokens, each >= 0; packed documents count one by one):
///
///   sum over sequences of  2 * M * T  +  sum over attention layers of  4 * A * D * T * (T + 1) / 2
///
/// M: elements of the matrices that a token is multiplied with: every linear of every layer, and the head, which counts
///    also when it is tied; the embedding is looked up, not multiplied, and norms are not counted.
/// T: tokens of the sequence. A: query heads. D: head width. 4: scores (QK^T) and their sum over values (PV), two FLOPs
///    each. T * (T + 1) / 2: pairs of a query and a key that causal attention visits.
/// Throws UsageError for a negative length.
Flops forward_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths);

/// The same with the backward pass, which costs twice the forward. Recomputation is no model FLOP.
Flops training_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths);

/// M above, elements.
std::int64_t matmul_parameters(const ModelSpec& model);

}  // namespace octavo
