#include "ops/kernels/swiglu.h"

namespace octavo::ops::kernels {

template <class T>
OCTAVO_LOOPS void swiglu_forward(const T* __restrict gate, const T* __restrict up, std::int64_t n, T* __restrict y) {
  using S = ComputeType<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    const S g = load(gate[i]);
    store(y[i], g / (S(1) + exponential(-g)) * load(up[i]));
  }
}

template <class T>
OCTAVO_LOOPS void swiglu_backward(const T* __restrict dy, const T* __restrict gate, const T* __restrict up,
                                  std::int64_t n, T* __restrict dgate, T* __restrict dup) {
  using S = ComputeType<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    const S g = load(gate[i]);
    const S d = load(dy[i]);
    const S sigmoid = S(1) / (S(1) + exponential(-g));
    const S silu = g * sigmoid;
    store(dup[i], d * silu);
    store(dgate[i], d * load(up[i]) * (sigmoid + silu * (S(1) - sigmoid)));
  }
}

#define OCTAVO_INSTANTIATE(T)                                            \
  template void swiglu_forward<T>(const T*, const T*, std::int64_t, T*); \
  template void swiglu_backward<T>(const T*, const T*, const T*, std::int64_t, T*, T*);
OCTAVO_INSTANTIATE(float)
OCTAVO_INSTANTIATE(double)
OCTAVO_INSTANTIATE(Bf16)
#undef OCTAVO_INSTANTIATE

}  // namespace octavo::ops::kernels
