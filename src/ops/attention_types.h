// Which operands the products of attention use, and how its kernels see one head.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/block_product.h"
#include "ops/element_types.h"
#include "ops/kernels/attention.h"

namespace octavo::ops {

/// Operands are bfloat16 where q is and the processor multiplies it (in pairs, so D must be even); else float or
/// double.
inline at::ScalarType operand_dtype(const at::Tensor& q) {
  const bool narrow = q.scalar_type() == at::kBFloat16 && q.size(2) % 2 == 0 && has_bf16_products();
  return narrow ? at::kBFloat16 : statistics_dtype(q.scalar_type());
}

/// Calls body(T{}, E{}): the element types of q and of the operands.
template <class Body>
void with_attention_types(const at::Tensor& q, const char* where, Body&& body) {
  with_element_type(q.scalar_type(), where, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, kernels::Bf16>) {
      if (operand_dtype(q) == at::kBFloat16) return body(element, kernels::Bf16{});
    }
    body(element, kernels::ComputeType<T>{});
  });
}

/// Rows [begin, end) of head `head` of x [N, heads, D].
template <class T>
kernels::StridedRows<T> rows_of_head(const at::Tensor& x, std::int64_t head, std::int64_t begin, std::int64_t end) {
  return {data_of<T>(x) + begin * x.stride(0) + head * x.stride(1), x.stride(0), end - begin};
}

}  // namespace octavo::ops
