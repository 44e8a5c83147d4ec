// From one product of the qkv panel to rotated heads, and back. One Function instead of three slices: the backward of
// a slice would fill a zero tensor of the whole product.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "octavo/ops/functions.h"
#include "octavo/ops/rms_norm.h"

namespace octavo::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Arguments : torch::CustomClassHolder {
  std::int64_t units, head_dim;
  RopeTable rope;
  std::optional<QkNorm> norm;
};

/// The heads of qkv [T, U * (Q + 2) * D] as views.
struct Views {
  at::Tensor q_TUQD, k_TUD, v_TUD;
};

Views views_of(const at::Tensor& qkv, std::int64_t units, std::int64_t head_dim) {
  const std::int64_t slots = qkv.size(1) / (units * head_dim);  // Q + 2
  const at::Tensor all = qkv.view({qkv.size(0), units, slots, head_dim});
  return {all.narrow(2, 0, slots - 2), all.select(2, slots - 2), all.select(2, slots - 1)};
}

struct SplitHeadsFunction : torch::autograd::Function<SplitHeadsFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& qkv,
                               const c10::intrusive_ptr<Arguments>& arguments) {
    at::AutoDispatchBelowADInplaceOrView guard;
    const Views in = views_of(qkv, arguments->units, arguments->head_dim);
    ctx->saved_data["arguments"] = c10::IValue::make_capsule(arguments);
    at::Tensor q_source = in.q_TUQD, k_source = in.k_TUD;
    if (arguments->norm) {
      const QkNorm& norm = *arguments->norm;
      RmsNormResult q = rms_norm_forward(in.q_TUQD, norm.q.common(), norm.eps);
      RmsNormResult k = rms_norm_forward(in.k_TUD, norm.k.common(), norm.eps);
      ctx->save_for_backward({qkv, q.rstd, k.rstd});
      q_source = q.y;
      k_source = k.y;
    }
    // Fresh tensors, so that the product itself is freed: its backward needs no value of it.
    const at::Tensor q_TUQD = at::empty(in.q_TUQD.sizes(), qkv.options());
    const at::Tensor k_TUD = at::empty(in.k_TUD.sizes(), qkv.options());
    rope_into(q_TUQD, q_source, arguments->rope, false);
    rope_into(k_TUD, k_source, arguments->rope, false);
    return {q_TUQD.flatten(1, 2), k_TUD, in.v_TUD.clone(at::MemoryFormat::Contiguous)};
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto capsule = ctx->saved_data["arguments"].toCapsule();
    const auto* arguments = static_cast<const Arguments*>(capsule.get());
    const at::Tensor &dq = gradients[0], &dk = gradients[1], &dv = gradients[2];
    const std::int64_t tokens = dk.size(0), units = arguments->units, head_dim = arguments->head_dim;
    const std::int64_t group = dq.size(1) / units;
    at::Tensor dqkv = at::empty({tokens, units * (group + 2) * head_dim}, dk.options());
    const Views out = views_of(dqkv, units, head_dim);
    const at::Tensor dq_TUQD = dq.unflatten(1, {units, group});
    out.v_TUD.copy_(dv);
    if (!arguments->norm) {
      rope_into(out.q_TUQD, dq_TUQD, arguments->rope, true);
      rope_into(out.k_TUD, dk, arguments->rope, true);
      return {dqkv, {}};
    }
    const QkNorm& norm = *arguments->norm;
    const variable_list saved = ctx->get_saved_variables();
    const Views in = views_of(saved[0], units, head_dim);
    const at::Tensor dq_normed = at::empty({tokens, units, group, head_dim}, dq.options());
    const at::Tensor dk_normed = at::empty({tokens, units, head_dim}, dk.options());
    rope_into(dq_normed, dq_TUQD, arguments->rope, true);
    rope_into(dk_normed, dk, arguments->rope, true);
    RmsNormGradient q = rms_norm_backward(dq_normed, in.q_TUQD, norm.q.common(), saved[1]);
    RmsNormGradient k = rms_norm_backward(dk_normed, in.k_TUD, norm.k.common(), saved[2]);
    norm.q.add_common(q.dw);
    norm.k.add_common(k.dw);
    out.q_TUQD.copy_(q.dx);
    out.k_TUD.copy_(k.dx);
    return {dqkv, {}};
  }
};

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> split_heads(const at::Tensor& qkv, std::int64_t units,
                                                           std::int64_t head_dim, const RopeTable& rope,
                                                           const std::optional<QkNorm>& norm) {
  auto arguments = c10::make_intrusive<Arguments>();
  arguments->units = units;
  arguments->head_dim = head_dim;
  arguments->rope = rope;
  arguments->norm = norm;
  const variable_list heads = SplitHeadsFunction::apply(qkv, arguments);
  return {heads[0], heads[1], heads[2]};
}

}  // namespace octavo::ops
