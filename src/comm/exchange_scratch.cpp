#include "comm/exchange_scratch.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"

namespace octavo {

at::Tensor exchange_scratch(const ExchangePlan& plan, const TensorCall& call) {
  // A barrier's tokens are a few bytes, kept with the operation.
  if (plan.scratch_elements == 0 || call.kind == Collective::Barrier) return {};
  const CategoryScope communication(MemoryCategory::Communication);
  return at::empty({plan.scratch_elements}, (call.in.defined() ? call.in : call.out).options().requires_grad(false));
}

}  // namespace octavo
