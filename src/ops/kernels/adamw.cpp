#include "ops/kernels/adamw.h"

namespace octavo::ops::kernels {
namespace {

template <class S>
inline S updated(S& w, S& m, S& v, S given, const AdamWFactors<S>& f) {
  const S g = f.gradient_scale * given;
  m = f.beta1 * m + f.one_minus_beta1 * g;
  v = f.beta2 * v + f.one_minus_beta2 * g * g;
  w = f.decay * w - f.step_size * m / (std::sqrt(v) * f.inverse_root_correction2 + f.eps);
  return w;
}

}  // namespace

template <class S>
OCTAVO_LOOPS void adamw(S* __restrict w, S* __restrict m, S* __restrict v, const S* __restrict g, std::int64_t n,
                        const AdamWFactors<S>& factors) {
  const AdamWFactors<S> f = factors;
  for (std::int64_t i = 0; i < n; ++i) updated(w[i], m[i], v[i], g[i], f);
}

OCTAVO_LOOPS void adamw_with_copy(float* __restrict w, float* __restrict m, float* __restrict v,
                                  const float* __restrict g, Bf16* __restrict compute, std::int64_t n,
                                  const AdamWFactors<float>& factors) {
  const AdamWFactors<float> f = factors;
  for (std::int64_t i = 0; i < n; ++i) store(compute[i], updated(w[i], m[i], v[i], g[i], f));
}

template <class T>
OCTAVO_LOOPS double sum_of_squares(const T* values, std::int64_t n) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<double>(load(values[i + lane]));
      lanes[lane] += value * value;
    }
  }
  double sum = sum_of_lanes(lanes);
  for (; i < n; ++i) {
    const double value = static_cast<double>(load(values[i]));
    sum += value * value;
  }
  return sum;
}

template void adamw<float>(float*, float*, float*, const float*, std::int64_t, const AdamWFactors<float>&);
template void adamw<double>(double*, double*, double*, const double*, std::int64_t, const AdamWFactors<double>&);
template double sum_of_squares<float>(const float*, std::int64_t);
template double sum_of_squares<double>(const double*, std::int64_t);
template double sum_of_squares<Bf16>(const Bf16*, std::int64_t);

}  // namespace octavo::ops::kernels
