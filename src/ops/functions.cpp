#include "octavo/ops/functions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "octavo/base/error.h"
#include "octavo/ops/matmul.h"
#include "octavo/ops/rms_norm.h"
#include "octavo/ops/swiglu.h"

namespace octavo::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Carries a plain C++ value through an autograd context.
template <class T>
struct Held : torch::CustomClassHolder {
  explicit Held(T v) : value(std::move(v)) {}
  T value;
};

template <class T>
void hold(AutogradContext* ctx, T value) {
  ctx->saved_data["held"] = c10::IValue::make_capsule(c10::make_intrusive<Held<T>>(std::move(value)));
}

template <class T>
T& held(AutogradContext* ctx) {
  return static_cast<Held<T>*>(ctx->saved_data["held"].toCapsule().get())->value;
}

void require_gradient_path(const at::Tensor& x) {
  internal_check(!at::GradMode::is_enabled() || x.requires_grad(),
                 "[ops] a linear whose input needs no gradient: its weight gradient would be lost");
}

/// An output that is at hand already. In a struct, since autograd looks into every tensor argument, also undefined
/// ones.
struct Kept {
  at::Tensor value;
};

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const WeightRef& weight, const Kept& kept) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x});
    hold(ctx, weight);
    return kept.value.defined() ? kept.value.alias() : ops::mm(x, weight.panel().t());
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    const WeightRef& weight = held<WeightRef>(ctx);
    weight.add_product(dy[0], x);
    return {ops::mm(dy[0], weight.panel()), {}, {}};
  }
};

/// Two panels on one input. In one Function, since autograd would hold both dx and their sum: three of x's size.
struct LinearPairFunction : torch::autograd::Function<LinearPairFunction> {
  using Weights = std::pair<WeightRef, WeightRef>;

  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const Weights& weights, const Kept& first,
                               const Kept& second) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x});
    hold(ctx, weights);
    const auto product = [&](const WeightRef& weight, const Kept& kept) {
      return kept.value.defined() ? kept.value.alias() : ops::mm(x, weight.panel().t());
    };
    return {product(weights.first, first), product(weights.second, second)};
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    const Weights& weights = held<Weights>(ctx);
    weights.first.add_product(dy[0], x);
    at::Tensor dx = ops::mm(dy[0], weights.first.panel());
    dy[0].reset();
    weights.second.add_product(dy[1], x);
    ops::addmm_(dx, dy[1], weights.second.panel());
    return {dx, {}, {}, {}};
  }
};

struct LinearOutFunction : torch::autograd::Function<LinearOutFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const WeightRef& weight, bool compute) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x});
    hold(ctx, weight);
    const at::Tensor panel = weight.panel();
    // One element spread over the shape: a tensor with the right metadata and no memory.
    return compute ? ops::mm(x, panel) : at::empty({1, 1}, x.options()).expand({x.size(0), panel.size(1)});
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    const WeightRef& weight = held<WeightRef>(ctx);
    weight.add_product(x, dy[0]);
    return {ops::mm(dy[0], weight.panel().t()), {}, {}};
  }
};

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const WeightRef& weight, double eps) {
    at::AutoDispatchBelowADInplaceOrView guard;
    RmsNormResult result = rms_norm_forward(x, weight.common(), eps);
    ctx->save_for_backward({x, result.rstd});
    hold(ctx, weight);
    return result.y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    const variable_list saved = ctx->get_saved_variables();
    const WeightRef& weight = held<WeightRef>(ctx);
    RmsNormGradient gradient = rms_norm_backward(dy[0], saved[0], weight.common(), saved[1]);
    weight.add_common(gradient.dw);
    return {gradient.dx, {}, {}};
  }
};

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate, const at::Tensor& up) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({gate, up});
    return swiglu_forward(gate, up);
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    const variable_list saved = ctx->get_saved_variables();
    SwigluGradient gradient = swiglu_backward(dy[0], saved[0], saved[1]);
    return {gradient.dgate, gradient.dup};
  }
};

struct AttentionArguments {
  std::shared_ptr<KeyValueSlot> slot;
  std::vector<AttentionPiece> pieces;
  double scale;
};

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor&, const at::Tensor&,
                            const AttentionArguments& arguments, Stash* stash) {
    at::AutoDispatchBelowADInplaceOrView guard;
    AttentionResult result;
    if (const auto kept = stash->kept("attention"); !kept.empty()) {
      result = {kept[0].alias(), kept[1]};
    } else {
      const auto [keys, values] = arguments.slot->exchange->gathered();
      result = attention_forward(q, keys, values, arguments.pieces, arguments.scale);
      stash->offer("attention", {result.out, result.lse});
    }
    ctx->save_for_backward({q, result.out, result.lse});
    hold(ctx, arguments);
    return result.out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list dout) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& arguments = held<AttentionArguments>(ctx);
    KeyValueExchange& exchange = *arguments.slot->exchange;
    const auto [keys, values] = exchange.gathered();
    AttentionGradient gradient =
        attention_backward(dout[0], saved[0], keys, values, {saved[1], saved[2]}, arguments.pieces, arguments.scale);
    const auto [dk, dv] = exchange.send_back(std::move(gradient.dk), std::move(gradient.dv));
    return {gradient.dq, dk, dv, {}, {}};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const WeightRef& weight, const at::Tensor& kept) {
  require_gradient_path(x);
  return LinearFunction::apply(x, weight, Kept{kept});
}

std::pair<at::Tensor, at::Tensor> linear_pair(const at::Tensor& x, const WeightRef& first, const WeightRef& second,
                                              const at::Tensor& kept_first, const at::Tensor& kept_second) {
  require_gradient_path(x);
  const variable_list y = LinearPairFunction::apply(x, std::pair(first, second), Kept{kept_first}, Kept{kept_second});
  return {y[0], y[1]};
}

at::Tensor linear_out(const at::Tensor& x, const WeightRef& weight, bool compute) {
  require_gradient_path(x);
  return LinearOutFunction::apply(x, weight, compute);
}

at::Tensor rms_norm(const at::Tensor& x, const WeightRef& weight, double eps) {
  return RmsNormFunction::apply(x, weight, eps);
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return SwigluFunction::apply(gate, up);
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::shared_ptr<KeyValueSlot>& slot, const std::vector<AttentionPiece>& pieces, double scale,
                     Stash& stash) {
  return AttentionFunction::apply(q, k, v, AttentionArguments{slot, pieces, scale}, &stash);
}

}  // namespace octavo::ops
