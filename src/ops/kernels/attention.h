// The loops of attention between its matrix products. A block is up to kQueryBlock queries of one head (columns)
// against up to kKeyBlock keys of its KV head (rows): scores are kept transposed, [K, N], so that every statistic of a
// query is a vertical sum and no row needs a horizontal one. Letters: K keys of the block, N its queries (padded), D
// head width. T: element of the tensors, E: element of the products' operands, S: float (double for double). Left
// operands [M, K] are row-major. Right operands [K, N] are row-major too, except that bfloat16 interleaves rows in
// pairs ([K/2, N, 2]), the form that the processor's dot products read.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops::kernels {

inline constexpr int kMaxColumns = 64;  // queries of a block at most

/// Rows of `width` elements, `stride` apart.
template <class T>
struct StridedRows {
  const T* data;
  std::int64_t stride;
  std::int64_t count;
};

/// Rows -> left operand y [num_padded, D]; rows beyond count are zero.
template <class T, class E>
void pack_left(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y);

/// Rows -> left operand y [D, num_padded], transposed; columns beyond count are zero.
template <class T, class E>
void pack_left_transposed(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y);

/// Rows -> right operand y [num_padded, D]; rows beyond count are zero.
template <class T, class E>
void pack_right(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y);

/// Rows -> right operand y [D, num_padded], transposed; columns beyond count are zero.
template <class T, class E>
void pack_right_transposed(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y);

/// scores[k][n] <- -inf where first_key + k >= end, or first_key + k >= diagonal + n.
template <class S>
void mask_scores(S* scores, std::int64_t num_keys, std::int64_t num_queries, std::int64_t first_key, std::int64_t end,
                 std::int64_t diagonal);

/// One step of the online softmax, in units of log 2. highest, sum [N] are brought up to date; correction [N] is what
/// everything summed before must be multiplied by; weights <- 2^(scale * scores - highest) as right operand [K, N] (may
/// be `scores`). scale > 0; K even; N at most kMaxColumns.
template <class S, class E>
void softmax_step(S* scores, std::int64_t num_keys, std::int64_t num_queries, S scale, S* highest, S* sum,
                  S* correction, E* weights);

/// sums[d][n] *= correction[n].
template <class S>
void correct_columns(S* sums, std::int64_t width, std::int64_t num_queries, const S* correction);

/// weights <- 2^(scale * scores - lse) as left operand [K, N] (may be `scores`);
/// dscores = weights * (dweights - delta), as left operand (may be `dweights`) and as right operand (the same place as
/// the left one unless E is Bf16). lse, delta [N]. K even; N at most kMaxColumns.
template <class S, class E>
void softmax_gradient(const S* scores, const S* dweights, std::int64_t num_keys, std::int64_t num_queries, S scale,
                      const S* lse, const S* delta, E* weights, E* dscores_left, E* dscores_right);

/// y row n, `stride` apart <- new_part[n] * x[.][n] + old_part[n] * y, for x [D, N]; y is not read where old_part is 0.
template <class S, class T>
void merge_columns(const S* x, std::int64_t num_queries, std::int64_t num_rows, std::int64_t width, const S* new_part,
                   const S* old_part, T* y, std::int64_t stride);

/// y rows, `stride` apart <- factor * x [count, D].
template <class S, class T>
void store_rows(const S* x, std::int64_t count, std::int64_t width, S factor, T* y, std::int64_t stride);

/// products[n] = sum of a[n][d] * b[n][d].
template <class T>
void row_products(StridedRows<T> a, StridedRows<T> b, std::int64_t width, ComputeType<T>* products);

}  // namespace octavo::ops::kernels
