#include "octavo/ops/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cmath>

#include "ops/element_types.h"
#include "ops/kernels/adamw.h"

namespace octavo::ops {
namespace {

void check_adamw(const at::Tensor& w, const at::Tensor& m, const at::Tensor& v, const at::Tensor& g,
                 const at::Tensor& compute, const AdamWOptions& options) {
  check_shape(w.dim() == 1 && w.is_contiguous() && (w.scalar_type() == at::kFloat || w.scalar_type() == at::kDouble),
              "adamw_", "w", w, "it must be contiguous [n], float32 or float64");
  for (const at::Tensor& other : {m, v, g}) {
    check_shape(other.sizes() == w.sizes() && other.is_contiguous() && other.scalar_type() == w.scalar_type(), "adamw_",
                "m, v or g", other, "it must have w's shape and dtype");
  }
  if (compute.defined()) {
    check_shape(compute.sizes() == w.sizes() && compute.is_contiguous() && compute.scalar_type() == at::kBFloat16 &&
                    w.scalar_type() == at::kFloat,
                "adamw_", "compute", compute, "it must be contiguous bfloat16 beside float32 weights");
  }
  internal_check(options.step >= 1, cat("[ops] adamw_: step ", options.step, " must be 1 at the first update."));
}

template <class S>
kernels::AdamWFactors<S> factors_of(const AdamWOptions& options) {
  const double step = static_cast<double>(options.step);
  const double correction1 = 1 - std::pow(options.beta1, step);
  const double correction2 = 1 - std::pow(options.beta2, step);
  return {.gradient_scale = static_cast<S>(options.gradient_scale),
          .decay = static_cast<S>(1 - options.learning_rate * options.weight_decay),
          .beta1 = static_cast<S>(options.beta1),
          .one_minus_beta1 = static_cast<S>(1 - options.beta1),
          .beta2 = static_cast<S>(options.beta2),
          .one_minus_beta2 = static_cast<S>(1 - options.beta2),
          .inverse_root_correction2 = static_cast<S>(1 / std::sqrt(correction2)),
          .eps = static_cast<S>(options.eps),
          .step_size = static_cast<S>(options.learning_rate / correction1)};
}

}  // namespace

void adamw_(at::Tensor& w, at::Tensor& m, at::Tensor& v, const at::Tensor& g, at::Tensor compute,
            const AdamWOptions& options) {
  check_adamw(w, m, v, g, compute, options);
  if (w.is_meta()) return;
  const std::int64_t n = w.numel();
  if (w.scalar_type() == at::kDouble) {
    kernels::adamw<double>(mutable_data_of<double>(w), mutable_data_of<double>(m), mutable_data_of<double>(v),
                           data_of<double>(g), n, factors_of<double>(options));
  } else if (compute.defined()) {
    kernels::adamw_with_copy(mutable_data_of<float>(w), mutable_data_of<float>(m), mutable_data_of<float>(v),
                             data_of<float>(g), mutable_data_of<kernels::Bf16>(compute), n, factors_of<float>(options));
  } else {
    kernels::adamw<float>(mutable_data_of<float>(w), mutable_data_of<float>(m), mutable_data_of<float>(v),
                          data_of<float>(g), n, factors_of<float>(options));
  }
}

void adamw_naive_(at::Tensor& w, at::Tensor& m, at::Tensor& v, const at::Tensor& g, at::Tensor compute,
                  const AdamWOptions& options) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_adamw(w, m, v, g, compute, options);
  const double step = static_cast<double>(options.step);
  const at::Tensor scaled = g * options.gradient_scale;
  m.mul_(options.beta1).add_(scaled, 1 - options.beta1);
  v.mul_(options.beta2).addcmul_(scaled, scaled, 1 - options.beta2);
  const at::Tensor first = m / (1 - std::pow(options.beta1, step));
  const at::Tensor second = v / (1 - std::pow(options.beta2, step));
  w.mul_(1 - options.learning_rate * options.weight_decay);
  w.addcdiv_(first, second.sqrt().add_(options.eps), -options.learning_rate);
  if (compute.defined()) compute.copy_(w);
}

double sum_of_squares(const at::Tensor& x) {
  check_shape(x.dim() == 1 && x.is_contiguous(), "sum_of_squares", "x", x, "it must be contiguous [n]");
  if (x.is_meta()) return 0.0;
  double sum = 0;
  with_element_type(x.scalar_type(), "sum_of_squares", [&](auto element) {
    using T = decltype(element);
    sum = kernels::sum_of_squares<T>(data_of<T>(x), x.numel());
  });
  return sum;
}

}  // namespace octavo::ops
