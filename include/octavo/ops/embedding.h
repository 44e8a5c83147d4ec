// Vocabulary rows looked up by id. Letters: T tokens, V rows, H hidden width.
#pragma once

#include <ATen/core/Tensor.h>

namespace octavo::ops {

/// ids [T] int64 on the CPU, each in [0, V); rows [V, H] -> [T, H]. Throws UsageError naming the first id outside.
/// On the meta device (rows meta) ids may be anything.
at::Tensor embedding_forward(const at::Tensor& ids_T, const at::Tensor& rows_VH);

/// gradient [V, H] (sum dtype) of the rows += dx [T, H], token after token.
void embedding_backward_(const at::Tensor& gradient_VH, const at::Tensor& ids_T, const at::Tensor& dx_TH);

}  // namespace octavo::ops
