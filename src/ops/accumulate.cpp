#include "octavo/ops/accumulate.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "octavo/base/error.h"
#include "ops/element_types.h"
#include "ops/kernels/accumulate.h"

namespace octavo::ops {

void accumulate_(const at::Tensor& sum, const at::Tensor& addend) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (sum.scalar_type() == addend.scalar_type()) {
    sum.add_(addend);
    return;
  }
  internal_check(sum.scalar_type() == at::kFloat && addend.scalar_type() == at::kBFloat16 &&
                     sum.sizes() == addend.sizes() && sum.is_contiguous() && addend.is_contiguous(),
                 "[ops] accumulate_: bfloat16 is added into a contiguous float32 tensor of its shape");
  if (sum.is_meta()) return;
  kernels::accumulate(data_of<kernels::Bf16>(addend), sum.numel(), mutable_data_of<float>(sum));
}

}  // namespace octavo::ops
