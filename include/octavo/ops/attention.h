// Softmax attention over pieces, with the log-sum-exp of every query row. Letters: T queries held here, S keys held
// here, A query heads, G KV heads (A a multiple of G; query head h reads KV head h / (A/G)), D head width.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace octavo::ops {

/// Queries [q_begin, q_begin + q_len) see keys [k_begin, k_begin + k_len). causal: aligned at the bottom right, so the
/// last query sees every key of the piece and q_len <= k_len; else all of them. A query may appear in several pieces
/// with disjoint keys (a zigzag chunk: a full prefix and a causal diagonal); their results merge by log-sum-exp.
struct AttentionPiece {
  std::int64_t q_begin, q_len, k_begin, k_len;
  bool causal;
};

struct AttentionResult {
  at::Tensor out;  // [T, A, D], contiguous, dtype of q; zero for queries in no piece
  at::Tensor lse;  // [A, T] (contiguous), float32 (float64 for float64); -inf for queries in no piece
};

/// q [T, A, D], k and v [S, G, D]; rows and heads may be strided, the last dimension is contiguous. Scores are scaled
/// by `scale` > 0 (1/sqrt(D) in the models here). They exist in small blocks only; sums are float32 (float64) whatever
/// the dtype. Scratch: two copies of at most 4096 keys of one KV head, five in the backward, allocated by libtorch and
/// so counted; on the meta device the same is allocated and nothing computed. FLOPs are booked with the rank's account
/// (memory/account.h), the same on meta: two products over the pairs that the pieces let see, five in the backward,
/// and apart from them the pairs that blocks compute for nothing. Local, in the calling thread alone.
/// Throws InternalError if shapes or pieces do not fit.
AttentionResult attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  std::span<const AttentionPiece> pieces, double scale);

struct AttentionGradient {
  at::Tensor dq;  // [T, A, D]; all three contiguous, in the dtype of q
  at::Tensor dk;  // [S, G, D]
  at::Tensor dv;  // [S, G, D]
};
/// Takes out and lse of the forward, whichever form computed them. Scratch as there.
AttentionGradient attention_backward(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const AttentionResult& forward,
                                     std::span<const AttentionPiece> pieces, double scale);

/// Dense masked softmax in plain libtorch calls: the reference.
AttentionResult attention_forward_naive(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        std::span<const AttentionPiece> pieces, double scale);
AttentionGradient attention_backward_naive(const at::Tensor& dout, const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v, const AttentionResult& forward,
                                           std::span<const AttentionPiece> pieces, double scale);

}  // namespace octavo::ops
