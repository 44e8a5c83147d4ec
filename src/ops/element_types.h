// From a tensor's dtype to the type that the kernels compute with.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "ops/kernels/simd.h"

namespace octavo::ops {

/// dtype of statistics and sums: float32, or float64 for float64.
inline at::ScalarType statistics_dtype(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

/// Calls body(T{}) with T = float, double or kernels::Bf16. Throws InternalError for any other dtype.
template <class Body>
void with_element_type(at::ScalarType dtype, const char* where, Body&& body) {
  switch (dtype) {
    case at::kFloat:
      return std::forward<Body>(body)(float{});
    case at::kDouble:
      return std::forward<Body>(body)(double{});
    case at::kBFloat16:
      return std::forward<Body>(body)(kernels::Bf16{});
    default:
      throw InternalError(
          cat("[ops] ", where, ": dtype ", c10::toString(dtype), " has no kernel; use float32, float64 or bfloat16."));
  }
}

template <class T>
const T* data_of(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}
template <class T>
T* mutable_data_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

/// Throws InternalError "[ops] where: ..." with the tensor's shape unless `condition` holds.
inline void check_shape(bool condition, const char* where, const char* name, const at::Tensor& tensor,
                        const char* rule) {
  if (condition) return;
  std::vector<std::string> sizes;
  if (tensor.defined()) {
    for (const std::int64_t size : tensor.sizes()) sizes.push_back(cat(size));
  }
  throw InternalError(cat("[ops] ", where, ": ", name, " ", tensor.defined() ? c10::toString(tensor.scalar_type()) : "",
                          " [", join(sizes, ", "), "] does not fit; ", rule, "."));
}

}  // namespace octavo::ops
