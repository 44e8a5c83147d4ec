// The memory that a collective over processes needs beside its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/c10d/exchange_plan.h"
#include "comm/tensor_call.h"

namespace octavo {

/// For the plan's scratch elements, on the call's device, charged as communication; undefined if it needs none.
at::Tensor exchange_scratch(const ExchangePlan& plan, const TensorCall& call);

}  // namespace octavo
