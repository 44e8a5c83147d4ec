// What both forms of attention demand of their arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "octavo/ops/attention.h"
#include "ops/element_types.h"

namespace octavo::ops {

inline void check_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            std::span<const AttentionPiece> pieces, double scale, const char* where) {
  internal_check(scale > 0, cat("[ops] ", where, ": scale ", scale, " must be positive."));
  check_shape(q.dim() == 3 && q.size(1) > 0 && q.size(2) > 0, where, "q", q, "it must be [T, A, D]");
  check_shape(k.dim() == 3 && k.size(2) == q.size(2) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 &&
                  k.scalar_type() == q.scalar_type(),
              where, "k", k, "it must be [S, G, D] with A a multiple of G, in q's dtype");
  check_shape(v.sizes() == k.sizes() && v.scalar_type() == k.scalar_type(), where, "v", v,
              "it must have k's shape and dtype");
  for (const at::Tensor& x : {q, k, v}) {
    check_shape(x.stride(2) == 1 || x.size(2) == 1, where, "q, k or v", x, "the last dimension must be contiguous");
  }
  for (const AttentionPiece& piece : pieces) {
    const bool inside = piece.q_begin >= 0 && piece.q_len >= 0 && piece.q_begin + piece.q_len <= q.size(0) &&
                        piece.k_begin >= 0 && piece.k_len >= 0 && piece.k_begin + piece.k_len <= k.size(0);
    if (inside && (!piece.causal || piece.q_len <= piece.k_len)) continue;
    throw InternalError(cat("[ops] ", where, ": piece of queries ", piece.q_begin, "+", piece.q_len, " and keys ",
                            piece.k_begin, "+", piece.k_len, piece.causal ? ", causal," : "", " does not fit ",
                            q.size(0), " queries and ", k.size(0),
                            " keys; a causal piece needs at least as many keys as queries."));
  }
}

inline void check_attention_result(const at::Tensor& dout, const at::Tensor& q, const AttentionResult& forward,
                                   const char* where) {
  check_shape(dout.sizes() == q.sizes() && dout.scalar_type() == q.scalar_type(), where, "dout", dout,
              "it must have q's shape and dtype");
  check_shape(dout.stride(2) == 1 || dout.size(2) == 1, where, "dout", dout, "the last dimension must be contiguous");
  check_shape(
      forward.out.sizes() == q.sizes() && forward.out.is_contiguous() && forward.out.scalar_type() == q.scalar_type(),
      where, "out", forward.out, "it must be what the forward returned");
  check_shape(forward.lse.dim() == 2 && forward.lse.size(0) == q.size(1) && forward.lse.size(1) == q.size(0) &&
                  forward.lse.is_contiguous() && forward.lse.scalar_type() == statistics_dtype(q.scalar_type()),
              where, "lse", forward.lse, "it must be what the forward returned");
}

}  // namespace octavo::ops
