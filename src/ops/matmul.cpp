#include "octavo/ops/matmul.h"

#include <ATen/ATen.h>

#include "octavo/memory/account.h"

namespace octavo::ops {
namespace {

/// After the product: libtorch has checked the shapes.
void count(const at::Tensor& a, const at::Tensor& b) {
  count_flops(
      {.matmul = 2 * static_cast<Flops>(a.size(0)) * static_cast<Flops>(a.size(1)) * static_cast<Flops>(b.size(1))});
}

}  // namespace

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor product = at::mm(a, b);
  count(a, b);
  return product;
}

void mm_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  at::mm_out(out, a, b);
  count(a, b);
}

void addmm_(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  sum.addmm_(a, b);
  count(a, b);
}

}  // namespace octavo::ops
