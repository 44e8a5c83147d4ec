#include "ops/kernels/cross_entropy.h"

#include <limits>

namespace octavo::ops::kernels {

template <class T>
OCTAVO_LOOPS ComputeType<T> merged_log_sum_exp(const T* logits, std::int64_t n, ComputeType<T> lse) {
  using S = ComputeType<T>;
  S highest = lse;
#pragma omp simd reduction(max : highest)
  for (std::int64_t i = 0; i < n; ++i) highest = load(logits[i]) > highest ? load(logits[i]) : highest;
  // Nothing but -inf so far: any finite reference keeps exp(-inf - reference) at zero instead of NaN.
  const S reference = highest == -std::numeric_limits<S>::infinity() ? S(0) : highest;
  S sum = exponential(lse - reference);
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += exponential(load(logits[i]) - reference);
  return reference + std::log(sum);
}

template <class T>
OCTAVO_LOOPS void scaled_softmax(T* logits, std::int64_t n, ComputeType<T> lse, ComputeType<T> scale) {
  for (std::int64_t i = 0; i < n; ++i) store(logits[i], scale * exponential(load(logits[i]) - lse));
}

#define OCTAVO_INSTANTIATE(T)                                                            \
  template ComputeType<T> merged_log_sum_exp<T>(const T*, std::int64_t, ComputeType<T>); \
  template void scaled_softmax<T>(T*, std::int64_t, ComputeType<T>, ComputeType<T>);
OCTAVO_INSTANTIATE(float)
OCTAVO_INSTANTIATE(double)
OCTAVO_INSTANTIATE(Bf16)
#undef OCTAVO_INSTANTIATE

}  // namespace octavo::ops::kernels
