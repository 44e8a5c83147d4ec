// Model FLOPs: the arithmetic that the model itself asks for, whatever the layout. A multiply-add counts as two.
//
// Letters
//   T     tokens of a sequence
//   M     elements of the matrices that a token is multiplied with: every linear of every layer, of experts the chosen
//         ones and the router, and the head, which counts also when it is tied. The embedding is looked up, not
//         multiplied; norms, activations, rotary embeddings and softmax are not counted
//   A, D  query heads and their width (latent attention: half of head_dim + rope_dim + value_dim)
//   h_v, K, V, C, W   value heads, key and value width, chunk and convolution width of DeltaNet; Cc its channels
//
// A forward pass over one sequence:  2 * M * T
//   + per softmax layer    4 * A * D * P(T): scores (QK^T) and their sum over values (PV) of P(T) pairs
//   + per DeltaNet layer   T * (2 * Cc * W + h_v * (4 C K + C (K + V) + 2 C V + 6 K V)): convolution, and the chunkwise
//                          recurrence (models.md 7.2) with C = 64
#pragma once

#include <cstdint>
#include <span>

#include "octavo/base/units.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// P(T): how pairs of a query and a key are counted under the causal mask.
enum class CausalPairs {
  Visited,     // T * (T + 1) / 2: what is computed; the engine's accounting, and the default everywhere
  HalfSquare,  // T * T / 2: half of full attention, as published estimates have it; `octavo audit`
};

/// FLOPs of one forward pass over sequences of these lengths (tokens, each >= 0; packed documents count one by one).
/// Throws UsageError for a negative length.
Flops forward_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths,
                    CausalPairs pairs = CausalPairs::Visited);

/// The same with the backward pass, which costs twice the forward. Recomputation is no model FLOP.
Flops training_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths);

/// Forward, one sequence of T tokens: one layer, and of that what grows with pairs of tokens; the head. The sum over
/// layers and the head is forward_flops() of that sequence.
Flops layer_flops(const ModelSpec& model, const LayerSpec& layer, std::int64_t tokens,
                  CausalPairs pairs = CausalPairs::Visited);
Flops attention_core_flops(const LayerSpec& layer, std::int64_t tokens, CausalPairs pairs = CausalPairs::Visited);
Flops head_flops(const ModelSpec& model, std::int64_t tokens);

/// M: of the model, and of one layer.
std::int64_t matmul_parameters(const ModelSpec& model);
std::int64_t matmul_parameters(const ModelSpec& model, const LayerSpec& layer);

}  // namespace octavo
