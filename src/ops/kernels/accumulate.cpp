#include "ops/kernels/accumulate.h"

namespace octavo::ops::kernels {

OCTAVO_LOOPS void accumulate(const Bf16* __restrict addend, std::int64_t n, float* __restrict sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += load(addend[i]);
}

}  // namespace octavo::ops::kernels
