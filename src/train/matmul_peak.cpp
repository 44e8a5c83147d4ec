#include "octavo/train/matmul_peak.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "octavo/parallel/param_store.h"

namespace octavo {

double measure_matmul_peak(ElementType compute, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kSize = 1024;
  const at::TensorOptions options = at::TensorOptions(scalar_type(compute));
  const at::Tensor a = at::ones({kSize, kSize}, options), b = at::ones({kSize, kSize}, options);
  at::Tensor c = at::empty({kSize, kSize}, options);
  at::mm_out(c, a, b.t());  // the first product loads and packs
  double best = 0;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    at::mm_out(c, a, b.t());
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * kSize * kSize * kSize / taken);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
  return best;
}

}  // namespace octavo
