#include "ops/kernels/cross_entropy.h"

#include <limits>

namespace octavo::ops::kernels {

template <class T>
OCTAVO_LOOPS ComputeType<T> merged_log_sum_exp(const T* logits, std::int64_t n, ComputeType<T> lse) {
  using S = ComputeType<T>;
  S highest[kLanes];
  for (S& lane : highest) lane = -std::numeric_limits<S>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const S value = load(logits[i + lane]);
      highest[lane] = value > highest[lane] ? value : highest[lane];
    }
  }
  S highest_of_all = lse;
  for (; i < n; ++i) highest_of_all = load(logits[i]) > highest_of_all ? load(logits[i]) : highest_of_all;
  for (const S lane : highest) highest_of_all = lane > highest_of_all ? lane : highest_of_all;
  // Nothing but -inf so far: any finite reference keeps exp(-inf - reference) at zero instead of NaN.
  const S reference = highest_of_all == -std::numeric_limits<S>::infinity() ? S(0) : highest_of_all;

  S lanes[kLanes] = {};
  for (i = 0; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += exponential(load(logits[i + lane]) - reference);
  }
  S rest = exponential(lse - reference);
  for (; i < n; ++i) rest += exponential(load(logits[i]) - reference);
  return reference + std::log(sum_of_lanes(lanes) + rest);
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
