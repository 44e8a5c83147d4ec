#include "ops/kernels/rms_norm.h"

#include <algorithm>

namespace octavo::ops::kernels {

template <class T>
OCTAVO_LOOPS void rms_norm_forward(const T* x, const Rows& rows, const ComputeType<T>* w, double eps,
                                   std::int64_t width, T* y, ComputeType<T>* rstd) {
  using S = ComputeType<T>;
  const std::int64_t num_rows = rows.count();
  RowCursor cursor(rows);
  for (std::int64_t row = 0; row < num_rows; ++row, cursor.advance()) {
    const T* __restrict x_row = x + cursor.offset();
    T* __restrict y_row = y + row * width;
    S lanes[kLanes] = {};
    std::int64_t c = 0;
    for (; c + kLanes <= width; c += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const S value = load(x_row[c + lane]);
        lanes[lane] += value * value;
      }
    }
    S rest = 0;
    for (; c < width; ++c) rest += load(x_row[c]) * load(x_row[c]);
    const S mean = (sum_of_lanes(lanes) + rest) / static_cast<S>(width);
    const S r = S(1) / std::sqrt(mean + static_cast<S>(eps));
    rstd[row] = r;
    for (c = 0; c < width; ++c) store(y_row[c], w[c] * rounded_to<T>(load(x_row[c]) * r));
  }
}

template <class T>
OCTAVO_LOOPS void rms_norm_backward(const T* dy, const Rows& dy_rows, const T* x, const Rows& x_rows,
                                    const ComputeType<T>* w, const ComputeType<T>* rstd, std::int64_t width, T* dx,
                                    ComputeType<T>* dw, ComputeType<T>* scratch) {
  using S = ComputeType<T>;
  const std::int64_t num_rows = x_rows.count();
  RowCursor dy_cursor(dy_rows);
  RowCursor x_cursor(x_rows);
  // Sums of 64 rows are added up first: the error of a long sum in float grows with the number of its terms.
  constexpr std::int64_t kBlock = 64;
  S* __restrict block_dw = scratch;
  for (std::int64_t c = 0; c < width; ++c) dw[c] = 0;
  for (std::int64_t first = 0; first < num_rows; first += kBlock) {
    for (std::int64_t c = 0; c < width; ++c) block_dw[c] = 0;
    const std::int64_t last = std::min(first + kBlock, num_rows);
    for (std::int64_t row = first; row < last; ++row, dy_cursor.advance(), x_cursor.advance()) {
      const T* __restrict x_row = x + x_cursor.offset();
      const T* __restrict dy_row = dy + dy_cursor.offset();
      T* __restrict dx_row = dx + row * width;
      S lanes[kLanes] = {};
      std::int64_t c = 0;
      for (; c + kLanes <= width; c += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
          lanes[lane] += load(dy_row[c + lane]) * w[c + lane] * load(x_row[c + lane]);
        }
      }
      S rest = 0;
      for (; c < width; ++c) rest += load(dy_row[c]) * w[c] * load(x_row[c]);
      const S r = rstd[row];
      const S along_x = (sum_of_lanes(lanes) + rest) / static_cast<S>(width) * r * r * r;
      for (c = 0; c < width; ++c) {
        const S value = load(x_row[c]);
        const S gradient = load(dy_row[c]);
        block_dw[c] += gradient * rounded_to<T>(value * r);
        store(dx_row[c], r * gradient * w[c] - value * along_x);
      }
    }
    for (std::int64_t c = 0; c < width; ++c) dw[c] += block_dw[c];
  }
}

#define OCTAVO_INSTANTIATE(T)                                                                               \
  template void rms_norm_forward<T>(const T*, const Rows&, const ComputeType<T>*, double, std::int64_t, T*, \
                                    ComputeType<T>*);                                                       \
  template void rms_norm_backward<T>(const T*, const Rows&, const T*, const Rows&, const ComputeType<T>*,   \
                                     const ComputeType<T>*, std::int64_t, T*, ComputeType<T>*, ComputeType<T>*);
OCTAVO_INSTANTIATE(float)
OCTAVO_INSTANTIATE(double)
OCTAVO_INSTANTIATE(Bf16)
#undef OCTAVO_INSTANTIATE

}  // namespace octavo::ops::kernels
