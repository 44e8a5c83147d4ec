// Vocabulary rows looked up by id. Letters: T tokens, B rows that are here: [first_row, first_row + B), H hidden width.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace octavo::ops {

/// ids [T] int64 on the CPU, each in [0, vocab_size); rows [B, H] -> [T, H], zeros for ids whose row is not here.
/// Throws UsageError naming the first id outside. On the meta device (rows meta) ids may be anything.
at::Tensor embedding_forward(const at::Tensor& ids_T, const at::Tensor& rows_BH, std::int64_t first_row,
                             std::int64_t vocab_size);

/// gradient [B, H] (sum dtype) of the rows += dx [T, H], token after token; ids whose row is not here are passed over.
void embedding_backward_(const at::Tensor& gradient_BH, const at::Tensor& ids_T, const at::Tensor& dx_TH,
                         std::int64_t first_row);

}  // namespace octavo::ops
