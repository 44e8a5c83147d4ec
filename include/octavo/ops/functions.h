// The ops that blocks are written in: differentiable in their activations, never in their weights. With grad mode off
// they only compute. Letters: T tokens, I inputs, O outputs (a panel's rows), H hidden width, F features; for attention
// U KV heads held here, Q query heads per KV head, A = U * Q query heads, D head width.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "octavo/ops/attention.h"
#include "octavo/ops/key_value_exchange.h"
#include "octavo/ops/rope.h"
#include "octavo/ops/stash.h"
#include "octavo/ops/weight_ref.h"

namespace octavo::ops {

/// x [T, I] by a panel [O, I] -> x W^T [T, O]. In backward dx = dy W, and (dy, x) goes to the trip.
/// `kept`: the output, if it is at hand already (a recompute); undefined to compute it.
/// Throws InternalError if grad mode is on and x needs no gradient: autograd would skip the op and lose dW.
at::Tensor linear(const at::Tensor& x_TI, const WeightRef& weight, const at::Tensor& kept = {});

/// The same by two panels at once: their dx are added up in place.
std::pair<at::Tensor, at::Tensor> linear_pair(const at::Tensor& x_TI, const WeightRef& first, const WeightRef& second,
                                              const at::Tensor& kept_first = {}, const at::Tensor& kept_second = {});

/// x [T, O] by a panel that is stored transposed, [O, H] -> x W [T, H]: the last product of a partial.
/// In backward dx = dy W^T, and (x, dy) goes to the trip. compute = false gives the graph of the product with a value
/// that nobody may read: a recompute needs no more.
at::Tensor linear_out(const at::Tensor& x_TO, const WeightRef& weight, bool compute);

/// RMSNorm of x [T, H] with a common vector [H].
at::Tensor rms_norm(const at::Tensor& x_TH, const WeightRef& weight, double eps);

/// The norms of q and k over D (Qwen3).
struct QkNorm {
  WeightRef q, k;  // common vectors [D]
  double eps;
};

/// qkv [T, U * (Q + 2) * D], per KV head its queries, its key, its value -> q [T, A, D], k [T, U, D], v [T, U, D] with
/// norms, if given, and rotary embedding applied. All three are contiguous copies.
std::tuple<at::Tensor, at::Tensor, at::Tensor> split_heads(const at::Tensor& qkv, std::int64_t units,
                                                           std::int64_t head_dim, const RopeTable& rope,
                                                           const std::optional<QkNorm>& norm);

/// silu(gate) * up, both [T, F].
at::Tensor swiglu(const at::Tensor& gate_TF, const at::Tensor& up_TF);

/// q [T, A, D], k and v [T, U, D] of the tokens held here -> [T, A, D]. Attends to the keys and values that the slot's
/// exchange has gathered, in forward and again in backward, where it also takes their gradients back; so the graph
/// keeps neither. Keeps or finds (out, lse) as "attention" in `stash`; what is found needs no keys. `pieces` is copied.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::shared_ptr<KeyValueSlot>& slot, const std::vector<AttentionPiece>& pieces, double scale,
                     Stash& stash);

}  // namespace octavo::ops
