// How the kernels see a tensor: its leading dimensions as rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/element_types.h"
#include "ops/kernels/rows.h"

namespace octavo::ops {

/// Dimensions [first_dim, last - 1) as rows, the last dimension being the row's contiguous elements. At most three.
/// Throws InternalError otherwise.
inline kernels::Rows rows_of(const at::Tensor& x, std::int64_t first_dim, const char* where) {
  const std::int64_t num_dims = x.dim() - 1 - first_dim;
  check_shape(num_dims <= 3, where, "x", x, "at most three dimensions of rows are supported");
  check_shape(x.stride(-1) == 1 || x.size(-1) <= 1 || x.numel() == 0, where, "x", x,
              "the last dimension must be contiguous");
  kernels::Rows rows;
  for (std::int64_t d = 0; d < num_dims; ++d) {
    rows.size[3 - num_dims + d] = x.size(first_dim + d);
    rows.stride[3 - num_dims + d] = x.stride(first_dim + d);
  }
  return rows;
}

}  // namespace octavo::ops
