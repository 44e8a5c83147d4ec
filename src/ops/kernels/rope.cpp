#include "ops/kernels/rope.h"

namespace octavo::ops::kernels {

template <class T>
OCTAVO_LOOPS void rotate_heads(const T* x, const Rows& x_heads, const ComputeType<T>* cosine,
                               const ComputeType<T>* sine, ComputeType<T> direction, std::int64_t width, T* y,
                               const Rows& y_heads) {
  using S = ComputeType<T>;
  const std::int64_t half = width / 2;
  const std::int64_t num_heads = x_heads.count();
  RowCursor x_cursor(x_heads);
  RowCursor y_cursor(y_heads);
  for (std::int64_t head = 0; head < num_heads; ++head, x_cursor.advance(), y_cursor.advance()) {
    const T* x_head = x + x_cursor.offset();
    T* y_head = y + y_cursor.offset();
#pragma omp simd
    for (std::int64_t j = 0; j < half; ++j) {
      const S c = cosine[j];
      const S s = direction * sine[j];
      const S first = load(x_head[j]);
      const S second = load(x_head[j + half]);
      store(y_head[j], first * c - second * s);
      store(y_head[j + half], second * c + first * s);
    }
  }
}

#define OCTAVO_INSTANTIATE(T)                                                                                        \
  template void rotate_heads<T>(const T*, const Rows&, const ComputeType<T>*, const ComputeType<T>*, ComputeType<T>, \
                                std::int64_t, T*, const Rows&);
OCTAVO_INSTANTIATE(float)
OCTAVO_INSTANTIATE(double)
OCTAVO_INSTANTIATE(Bf16)
#undef OCTAVO_INSTANTIATE

}  // namespace octavo::ops::kernels
