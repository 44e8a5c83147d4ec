#include "octavo/ops/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "ops/kernels/rms_norm.h"
#include "ops/rows_of.h"

namespace octavo::ops {
namespace {

void check_weight(const at::Tensor& x, const at::Tensor& w, const char* where) {
  check_shape(x.dim() >= 1, where, "x", x, "it needs the normalised dimension");
  check_shape(w.dim() == 1 && w.size(0) == x.size(-1), where, "w", w, cat("x normalises ", x.size(-1)).c_str());
}

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w, const at::Tensor& rstd) {
  check_weight(x, w, "rms_norm_backward");
  check_shape(dy.sizes() == x.sizes() && dy.scalar_type() == x.scalar_type(), "rms_norm_backward", "dy", dy,
              "it must have x's shape and dtype");
  check_shape(rstd.sizes() == x.sizes().slice(0, x.dim() - 1) && rstd.is_contiguous(), "rms_norm_backward", "rstd",
              rstd, "it must be what the forward returned");
}

}  // namespace

RmsNormResult rms_norm_forward(const at::Tensor& x, const at::Tensor& w, double eps) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_weight(x, w, "rms_norm_forward");
  const at::ScalarType statistics = statistics_dtype(x.scalar_type());
  RmsNormResult result{at::empty(x.sizes(), x.options().memory_format(at::MemoryFormat::Contiguous)),
                       at::empty(x.sizes().slice(0, x.dim() - 1), x.options().dtype(statistics))};
  const at::Tensor w_wide = w.to(statistics).contiguous();
  const kernels::Rows rows = rows_of(x, 0, "rms_norm_forward");
  if (x.is_meta() || x.numel() == 0) return result;
  with_element_type(x.scalar_type(), "rms_norm_forward", [&](auto element) {
    using T = decltype(element);
    using S = kernels::ComputeType<T>;
    kernels::rms_norm_forward<T>(data_of<T>(x), rows, data_of<S>(w_wide), eps, x.size(-1), mutable_data_of<T>(result.y),
                                 mutable_data_of<S>(result.rstd));
  });
  return result;
}

RmsNormGradient rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                                  const at::Tensor& rstd) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_backward(dy, x, w, rstd);
  const at::ScalarType statistics = statistics_dtype(x.scalar_type());
  const at::TensorOptions wide = x.options().dtype(statistics);
  RmsNormGradient gradient{at::empty(x.sizes(), x.options().memory_format(at::MemoryFormat::Contiguous)),
                           at::empty({x.size(-1)}, wide)};
  const at::Tensor w_wide = w.to(statistics).contiguous();
  const at::Tensor scratch = at::empty({x.size(-1)}, wide);
  const kernels::Rows dy_rows = rows_of(dy, 0, "rms_norm_backward");
  const kernels::Rows x_rows = rows_of(x, 0, "rms_norm_backward");
  if (x.is_meta()) return gradient;
  with_element_type(x.scalar_type(), "rms_norm_backward", [&](auto element) {
    using T = decltype(element);
    using S = kernels::ComputeType<T>;
    kernels::rms_norm_backward<T>(data_of<T>(dy), dy_rows, data_of<T>(x), x_rows, data_of<S>(w_wide), data_of<S>(rstd),
                                  x.size(-1), mutable_data_of<T>(gradient.dx), mutable_data_of<S>(gradient.dw),
                                  mutable_data_of<S>(scratch));
  });
  return gradient;
}

RmsNormResult rms_norm_forward_naive(const at::Tensor& x, const at::Tensor& w, double eps) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_weight(x, w, "rms_norm_forward_naive");
  const at::ScalarType statistics = statistics_dtype(x.scalar_type());
  const at::Tensor x_wide = x.to(statistics);
  const at::Tensor rstd = at::rsqrt(at::mean(x_wide * x_wide, -1) + eps);
  const at::Tensor normalised = (x_wide * rstd.unsqueeze(-1)).to(x.scalar_type());
  return {(normalised.to(statistics) * w.to(statistics)).to(x.scalar_type()).contiguous(), rstd};
}

RmsNormGradient rms_norm_backward_naive(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                                        const at::Tensor& rstd) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_backward(dy, x, w, rstd);
  const at::ScalarType statistics = statistics_dtype(x.scalar_type());
  const at::Tensor x_wide = x.to(statistics);
  const at::Tensor r = rstd.unsqueeze(-1);
  const at::Tensor t = dy.to(statistics) * w.to(statistics);
  const at::Tensor along_x = at::mean(t * x_wide, -1, /*keepdim=*/true) * r * r * r;
  const at::Tensor normalised = (x_wide * r).to(x.scalar_type()).to(statistics);
  return {(r * t - x_wide * along_x).to(x.scalar_type()).contiguous(),
          (dy.to(statistics) * normalised).reshape({-1, x.size(-1)}).sum(0)};
}

}  // namespace octavo::ops
