#include "ops/block_product.h"

#include <ATen/ATen.h>
#include <ATen/native/CPUBlas.h>

namespace octavo::ops {
namespace {

namespace blas = at::native::cpublas;

/// libtorch has no question for it: the product throws where the processor or the build lacks it.
template <class E>
bool runs_here() {
  try {
    const E operand[16 * 16] = {};
    float sums[16 * 16];
    blas::brgemm(16, 16, 16, 16, 16, 16, false, operand, operand, sums);
    blas::brgemm_release();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

bool has_float_products() {
  static const bool answer = runs_here<float>();  // a fact about the machine
  return answer;
}

template <class S>
void general_product(const ProductShape& shape, const S* a, const S* b, S* c, bool add) {
  const at::TensorOptions options = at::CPU(c10::CppTypeToScalarType<S>::value);
  const at::Tensor left = at::from_blob(const_cast<S*>(a), {shape.m, shape.k}, {shape.a_stride, 1}, options);
  const at::Tensor right = at::from_blob(const_cast<S*>(b), {shape.k, shape.n}, options);
  at::Tensor sums = at::from_blob(c, {shape.m, shape.n}, options);
  if (add) {
    sums.addmm_(left, right);
  } else {
    at::mm_out(sums, left, right);
  }
}

}  // namespace

bool has_bf16_products() {
  static const bool answer = runs_here<at::BFloat16>();  // a fact about the machine
  return answer;
}

void block_product(const ProductShape& shape, const float* a, const float* b, float* c, bool add) {
  if (!has_float_products()) return general_product(shape, a, b, c, add);
  blas::brgemm(shape.m, shape.n, shape.k, shape.a_stride, shape.n, shape.n, add, a, b, c);
}

void block_product(const ProductShape& shape, const double* a, const double* b, double* c, bool add) {
  general_product(shape, a, b, c, add);
}

void block_product(const ProductShape& shape, const kernels::Bf16* a, const kernels::Bf16* b, float* c, bool add) {
  blas::brgemm(shape.m, shape.n, shape.k, shape.a_stride, shape.n, shape.n, add,
               reinterpret_cast<const at::BFloat16*>(a), reinterpret_cast<const at::BFloat16*>(b), c);
}

void end_products() {
  if (has_float_products() || has_bf16_products()) blas::brgemm_release();
}

}  // namespace octavo::ops
