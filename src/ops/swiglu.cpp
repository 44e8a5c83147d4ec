#include "octavo/ops/swiglu.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "ops/kernels/swiglu.h"
#include "ops/rows_of.h"

namespace octavo::ops {
namespace {

void check_pair(const at::Tensor& gate, const at::Tensor& other, const char* name, const char* where) {
  check_shape(gate.dim() == 2, where, "gate", gate, "it must be [T, F]");
  check_shape(other.sizes() == gate.sizes() && other.scalar_type() == gate.scalar_type(), where, name, other,
              "it must have gate's shape and dtype");
}

at::Tensor empty_like_contiguous(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options().memory_format(at::MemoryFormat::Contiguous));
}

}  // namespace

at::Tensor swiglu_forward(const at::Tensor& gate, const at::Tensor& up) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_pair(gate, up, "up", "swiglu_forward");
  const at::Tensor y = empty_like_contiguous(gate);
  kernels::RowCursor gate_row(rows_of(gate, 0, "swiglu_forward"));
  kernels::RowCursor up_row(rows_of(up, 0, "swiglu_forward"));
  if (gate.is_meta()) return y;
  const std::int64_t num_rows = gate.size(0), width = gate.size(1);
  with_element_type(gate.scalar_type(), "swiglu_forward", [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < num_rows; ++row, gate_row.advance(), up_row.advance()) {
      kernels::swiglu_forward<T>(data_of<T>(gate) + gate_row.offset(), data_of<T>(up) + up_row.offset(), width,
                                 mutable_data_of<T>(y) + row * width);
    }
  });
  return y;
}

SwigluGradient swiglu_backward(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_pair(gate, up, "up", "swiglu_backward");
  check_pair(gate, dy, "dy", "swiglu_backward");
  SwigluGradient gradient{empty_like_contiguous(gate), empty_like_contiguous(gate)};
  kernels::RowCursor dy_row(rows_of(dy, 0, "swiglu_backward"));
  kernels::RowCursor gate_row(rows_of(gate, 0, "swiglu_backward"));
  kernels::RowCursor up_row(rows_of(up, 0, "swiglu_backward"));
  if (gate.is_meta()) return gradient;
  const std::int64_t num_rows = gate.size(0), width = gate.size(1);
  with_element_type(gate.scalar_type(), "swiglu_backward", [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < num_rows; ++row, dy_row.advance(), gate_row.advance(), up_row.advance()) {
      kernels::swiglu_backward<T>(
          data_of<T>(dy) + dy_row.offset(), data_of<T>(gate) + gate_row.offset(), data_of<T>(up) + up_row.offset(),
          width, mutable_data_of<T>(gradient.dgate) + row * width, mutable_data_of<T>(gradient.dup) + row * width);
    }
  });
  return gradient;
}

at::Tensor swiglu_forward_naive(const at::Tensor& gate, const at::Tensor& up) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_pair(gate, up, "up", "swiglu_forward_naive");
  const at::ScalarType wide = statistics_dtype(gate.scalar_type());
  return (at::silu(gate.to(wide)) * up.to(wide)).to(gate.scalar_type()).contiguous();
}

SwigluGradient swiglu_backward_naive(const at::Tensor& dy, const at::Tensor& gate, const at::Tensor& up) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_pair(gate, up, "up", "swiglu_backward_naive");
  check_pair(gate, dy, "dy", "swiglu_backward_naive");
  const at::ScalarType wide = statistics_dtype(gate.scalar_type());
  const at::Tensor g = gate.to(wide), d = dy.to(wide);
  const at::Tensor sigmoid = at::sigmoid(g);
  const at::Tensor silu = g * sigmoid;
  return {(d * up.to(wide) * (sigmoid + silu * (1 - sigmoid))).to(gate.scalar_type()).contiguous(),
          (d * silu).to(gate.scalar_type()).contiguous()};
}

}  // namespace octavo::ops
