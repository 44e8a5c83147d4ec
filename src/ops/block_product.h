// Small matrix products in cache, C [M, N] (+)= A [M, K] B [K, N], with the fastest form that the processor has.
#pragma once

#include <cstdint>

#include "ops/kernels/simd.h"

namespace octavo::ops {

struct ProductShape {
  std::int64_t m, n, k;
  std::int64_t a_stride;  // elements between rows of A; those of B and C are contiguous
};

/// Whether bfloat16 operands can be multiplied into float sums. If not, widen them and use the float form.
bool has_bf16_products();

/// A and B are operands as kernels/attention.h defines them; c is overwritten, or added to.
/// bfloat16: K even. Call end_products() after the last product of a batch of them.
void block_product(const ProductShape& shape, const float* a, const float* b, float* c, bool add);
void block_product(const ProductShape& shape, const double* a, const double* b, double* c, bool add);
void block_product(const ProductShape& shape, const kernels::Bf16* a, const kernels::Bf16* b, float* c, bool add);

/// Gives back the processor's tile registers, which other libraries set up in their own way.
void end_products();

}  // namespace octavo::ops
