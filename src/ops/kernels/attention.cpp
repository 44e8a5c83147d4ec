#include "ops/kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace octavo::ops::kernels {
namespace {

template <class E, class T>
inline E converted(T value) {
  if constexpr (std::is_same_v<E, T>) {
    return value;
  } else {
    E result;
    store(result, load(value));
    return result;
  }
}

/// Where element (k, n) of a right operand of N columns lies.
template <class E>
inline std::int64_t right_index(std::int64_t k, std::int64_t n, std::int64_t num_columns) {
  if constexpr (std::is_same_v<E, Bf16>) return (k / 2) * 2 * num_columns + 2 * n + k % 2;
  return k * num_columns + n;
}

/// The bits of a float whose upper half is the nearest bfloat16 (ties away from zero: they are rare, and the sign
/// decides their direction). A NaN stays one, unless all of its bits are set.
inline std::uint32_t rounded_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) + 0x8000u;
}

/// As store(), in fewer instructions; ties as in rounded_bits().
template <class S>
inline void store_rounded(S& place, S value) {
  place = value;
}
inline void store_rounded(Bf16& place, float value) {
  place.bits = static_cast<std::uint16_t>(rounded_bits(value) >> 16);
}

using Word [[gnu::may_alias]] = std::uint32_t;  // two neighbours of a right operand of Bf16

/// Column n of an even row of a right operand and of the odd row after it; `rows` is where the even one begins.
inline void store_pair(Bf16* rows, std::int64_t, std::int64_t n, float even, float odd) {
  reinterpret_cast<Word*>(rows)[n] = (rounded_bits(even) >> 16) | (rounded_bits(odd) & 0xffff0000u);
}
template <class S>
inline void store_pair(S* rows, std::int64_t num_columns, std::int64_t n, S even, S odd) {
  rows[n] = even;
  rows[num_columns + n] = odd;
}

}  // namespace

template <class T, class E>
OCTAVO_LOOPS void pack_left(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const T* __restrict x_row = rows.data + row * rows.stride;
    E* __restrict y_row = y + row * width;
    for (std::int64_t d = 0; d < width; ++d) y_row[d] = converted<E>(x_row[d]);
  }
  std::fill(y + rows.count * width, y + num_padded * width, E{});
}

template <class T, class E>
OCTAVO_LOOPS void pack_left_transposed(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y) {
  for (std::int64_t d = 0; d < width; ++d) {
    E* __restrict y_row = y + d * num_padded;
    for (std::int64_t row = 0; row < rows.count; ++row) y_row[row] = converted<E>(rows.data[row * rows.stride + d]);
    std::fill(y_row + rows.count, y_row + num_padded, E{});
  }
}

template <class T, class E>
OCTAVO_LOOPS void pack_right(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y) {
  for (std::int64_t row = 0; row < num_padded; ++row) {
    const T* x_row = rows.data + row * rows.stride;
    for (std::int64_t d = 0; d < width; ++d) {
      y[right_index<E>(row, d, width)] = row < rows.count ? converted<E>(x_row[d]) : E{};
    }
  }
}

template <class T, class E>
OCTAVO_LOOPS void pack_right_transposed(StridedRows<T> rows, std::int64_t width, std::int64_t num_padded, E* y) {
  if constexpr (std::is_same_v<E, Bf16>) {
    // A pair of the operand is a pair of neighbours in its row: move them as one word.
    Word* words = reinterpret_cast<Word*>(y);
    for (std::int64_t pair = 0; pair < width / 2; ++pair) {
      Word* target = words + pair * num_padded;
      for (std::int64_t row = 0; row < rows.count; ++row) {
        std::memcpy(target + row, rows.data + row * rows.stride + 2 * pair, sizeof(Word));
      }
      std::fill(target + rows.count, target + num_padded, 0u);
    }
  } else {
    pack_left_transposed<T, E>(rows, width, num_padded, y);
  }
}

template <class S>
void mask_scores(S* scores, std::int64_t num_keys, std::int64_t num_queries, std::int64_t first_key, std::int64_t end,
                 std::int64_t diagonal) {
  for (std::int64_t k = 0; k < num_keys; ++k) {
    const std::int64_t key = first_key + k;
    const std::int64_t num_masked =
        key >= end ? num_queries : std::clamp<std::int64_t>(key - diagonal + 1, 0, num_queries);
    std::fill_n(scores + k * num_queries, num_masked, -std::numeric_limits<S>::infinity());
  }
}

template <class S, class E>
OCTAVO_LOOPS void softmax_step(S* scores, std::int64_t num_keys, std::int64_t num_queries, S scale, S* highest, S* sum,
                               S* correction, E* weights) {
  constexpr S kNothing = -std::numeric_limits<S>::infinity();
  S reference[kMaxColumns], total[kMaxColumns];
  std::fill_n(reference, num_queries, kNothing);
  std::fill_n(total, num_queries, S(0));
  for (std::int64_t k = 0; k < num_keys; ++k) {
    const S* row = scores + k * num_queries;
#pragma omp simd
    for (std::int64_t n = 0; n < num_queries; ++n) reference[n] = row[n] > reference[n] ? row[n] : reference[n];
  }
#pragma omp simd
  for (std::int64_t n = 0; n < num_queries; ++n) {
    const S before = highest[n];
    const S now = scale * reference[n] > before ? scale * reference[n] : before;
    highest[n] = now;
    // A query that has seen nothing yet: any finite reference keeps 2^(-inf - reference) at zero instead of NaN.
    reference[n] = now == kNothing ? S(0) : now;
    correction[n] = power_of_two(before - reference[n]);
  }
  for (std::int64_t k = 0; k < num_keys; k += 2) {
    S* even = scores + k * num_queries;
    S* odd = even + num_queries;
    E* target = weights + k * num_queries;
#pragma omp simd
    for (std::int64_t n = 0; n < num_queries; ++n) {
      const S upper = power_of_two(scale * even[n] - reference[n]);
      const S lower = power_of_two(scale * odd[n] - reference[n]);
      total[n] += upper + lower;
      store_pair(target, num_queries, n, upper, lower);
    }
  }
#pragma omp simd
  for (std::int64_t n = 0; n < num_queries; ++n) sum[n] = sum[n] * correction[n] + total[n];
}

template <class S>
OCTAVO_LOOPS void correct_columns(S* sums, std::int64_t width, std::int64_t num_queries, const S* correction) {
  for (std::int64_t d = 0; d < width; ++d) {
    for (std::int64_t n = 0; n < num_queries; ++n) sums[d * num_queries + n] *= correction[n];
  }
}

template <class S, class E>
OCTAVO_LOOPS void softmax_gradient(const S* scores, const S* dweights, std::int64_t num_keys, std::int64_t num_queries,
                                   S scale, const S* lse, const S* delta, E* weights, E* dscores_left,
                                   E* dscores_right) {
  for (std::int64_t k = 0; k < num_keys; k += 2) {
    const std::int64_t even = k * num_queries;
    const std::int64_t odd = even + num_queries;
#pragma omp simd
    for (std::int64_t n = 0; n < num_queries; ++n) {
      const S upper = power_of_two(scale * scores[even + n] - lse[n]);
      const S lower = power_of_two(scale * scores[odd + n] - lse[n]);
      const S d_upper = upper * (dweights[even + n] - delta[n]);
      const S d_lower = lower * (dweights[odd + n] - delta[n]);
      store_rounded(weights[even + n], upper);
      store_rounded(weights[odd + n], lower);
      store_rounded(dscores_left[even + n], d_upper);
      store_rounded(dscores_left[odd + n], d_lower);
      if constexpr (std::is_same_v<E, Bf16>) store_pair(dscores_right + even, num_queries, n, d_upper, d_lower);
    }
  }
}

template <class S, class T>
OCTAVO_LOOPS void merge_columns(const S* x, std::int64_t num_queries, std::int64_t num_rows, std::int64_t width,
                                const S* new_part, const S* old_part, T* y, std::int64_t stride) {
  for (std::int64_t n = 0; n < num_rows; ++n) {
    T* y_row = y + n * stride;
    const S fresh = new_part[n], old = old_part[n];
    if (old == S(0)) {
      for (std::int64_t d = 0; d < width; ++d) store(y_row[d], fresh * x[d * num_queries + n]);
    } else {
      for (std::int64_t d = 0; d < width; ++d) store(y_row[d], fresh * x[d * num_queries + n] + old * load(y_row[d]));
    }
  }
}

template <class S, class T>
OCTAVO_LOOPS void store_rows(const S* x, std::int64_t count, std::int64_t width, S factor, T* y, std::int64_t stride) {
  for (std::int64_t row = 0; row < count; ++row) {
    const S* __restrict x_row = x + row * width;
    T* __restrict y_row = y + row * stride;
    for (std::int64_t d = 0; d < width; ++d) store(y_row[d], factor * x_row[d]);
  }
}

template <class T>
OCTAVO_LOOPS void row_products(StridedRows<T> a, StridedRows<T> b, std::int64_t width, ComputeType<T>* products) {
  using S = ComputeType<T>;
  for (std::int64_t row = 0; row < a.count; ++row) {
    const T* __restrict a_row = a.data + row * a.stride;
    const T* __restrict b_row = b.data + row * b.stride;
    S lanes[kLanes] = {};
    std::int64_t d = 0;
    for (; d + kLanes <= width; d += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += load(a_row[d + lane]) * load(b_row[d + lane]);
    }
    S rest = 0;
    for (; d < width; ++d) rest += load(a_row[d]) * load(b_row[d]);
    products[row] = sum_of_lanes(lanes) + rest;
  }
}

#define OCTAVO_INSTANTIATE_PAIR(T, E)                                                       \
  template void pack_left<T, E>(StridedRows<T>, std::int64_t, std::int64_t, E*);            \
  template void pack_left_transposed<T, E>(StridedRows<T>, std::int64_t, std::int64_t, E*); \
  template void pack_right<T, E>(StridedRows<T>, std::int64_t, std::int64_t, E*);           \
  template void pack_right_transposed<T, E>(StridedRows<T>, std::int64_t, std::int64_t, E*);
OCTAVO_INSTANTIATE_PAIR(float, float)
OCTAVO_INSTANTIATE_PAIR(double, double)
OCTAVO_INSTANTIATE_PAIR(Bf16, Bf16)
OCTAVO_INSTANTIATE_PAIR(Bf16, float)
#undef OCTAVO_INSTANTIATE_PAIR

#define OCTAVO_INSTANTIATE_OPERAND(E)                                                                                \
  template void softmax_step<ComputeType<E>, E>(ComputeType<E>*, std::int64_t, std::int64_t, ComputeType<E>,         \
                                                ComputeType<E>*, ComputeType<E>*, ComputeType<E>*, E*);              \
  template void softmax_gradient<ComputeType<E>, E>(const ComputeType<E>*, const ComputeType<E>*, std::int64_t,      \
                                                    std::int64_t, ComputeType<E>, const ComputeType<E>*,             \
                                                    const ComputeType<E>*, E*, E*, E*);                              \
  template void merge_columns<ComputeType<E>, E>(const ComputeType<E>*, std::int64_t, std::int64_t, std::int64_t,    \
                                                 const ComputeType<E>*, const ComputeType<E>*, E*, std::int64_t);    \
  template void store_rows<ComputeType<E>, E>(const ComputeType<E>*, std::int64_t, std::int64_t, ComputeType<E>, E*, \
                                              std::int64_t);                                                         \
  template void row_products<E>(StridedRows<E>, StridedRows<E>, std::int64_t, ComputeType<E>*);
OCTAVO_INSTANTIATE_OPERAND(float)
OCTAVO_INSTANTIATE_OPERAND(double)
OCTAVO_INSTANTIATE_OPERAND(Bf16)
#undef OCTAVO_INSTANTIATE_OPERAND

template void mask_scores<float>(float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template void mask_scores<double>(double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t);
template void correct_columns<float>(float*, std::int64_t, std::int64_t, const float*);
template void correct_columns<double>(double*, std::int64_t, std::int64_t, const double*);

}  // namespace octavo::ops::kernels
