// Rotary position embedding (models.md 5.2), half-split pairs (j, j + D/2). Letters: T tokens, N heads, D head width.
#pragma once

#include <ATen/core/Tensor.h>

#include "octavo/spec/model_spec.h"

namespace octavo::ops {

struct RopeTable {
  at::Tensor cos, sin;  // [T, D/2], float32 (float64 when asked for)
};

/// Tables for `positions` [T] int64 (global token positions). inv_freq, angle, cos and sin in float32 as transformers
/// does (float64 if dtype is float64). On the meta device only shapes.
RopeTable rope_table(const RopeSpec& spec, std::int64_t head_dim, const at::Tensor& positions, at::ScalarType dtype);

/// x [T, N, D] or [T, N1, N2, D] (all but the last dimension may be strided: q and k are views of one qkv matrix) ->
/// rotated copy [T, N, D], contiguous, N = N1 * N2. inverse: the transposed rotation, which is the backward. Local.
at::Tensor rope(const at::Tensor& x, const RopeTable& table, bool inverse);

/// The same into y, a view that holds as many heads, in three or four dimensions of its own: the gradient of q goes
/// straight into its place in the gradient of qkv. y may be x itself, but must not overlap it otherwise.
void rope_into(const at::Tensor& y, const at::Tensor& x, const RopeTable& table, bool inverse);

at::Tensor rope_naive(const at::Tensor& x, const RopeTable& table, bool inverse);

}  // namespace octavo::ops
