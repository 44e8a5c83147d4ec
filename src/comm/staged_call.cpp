#include "comm/staged_call.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace octavo {

StagedCall::StagedCall(TensorCall call, int index, bool with_values)
    : call_(std::move(call)), writes_(writes_out(call_, index)), with_values_(with_values) {
  const at::NoGradGuard no_grad;
  const auto staged = [](const at::Tensor& tensor, bool copy) {
    if (!tensor.defined() || tensor.is_contiguous()) return tensor;
    return copy ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
  };
  in_ = staged(call_.in, with_values_);
  const bool in_place = call_.in.defined() && call_.out.defined() && call_.in.is_same(call_.out);
  out_ = in_place ? in_ : staged(call_.out, /*copy=*/false);
}

RawCall StagedCall::raw() const {
  return {.kind = call_.kind,
          .purpose = call_.purpose,
          .type = call_element_type(call_),
          .peer = call_.peer,
          .count = call_.count,
          .in = in_.defined() ? static_cast<const std::byte*>(in_.const_data_ptr()) : nullptr,
          .out = out_.defined() ? static_cast<std::byte*>(out_.mutable_data_ptr()) : nullptr,
          .lends = call_.lends};
}

void StagedCall::finish() {
  if (!writes_) return;
  if (!out_.is_same(call_.out)) {
    if (!with_values_) return;
    const at::NoGradGuard no_grad;
    call_.out.copy_(out_);
  } else if (!call_.out.is_inference()) {
    call_.out.unsafeGetTensorImpl()->bump_version();
  }
}

void StagedCall::finish_quietly() noexcept {
  try {
    finish();
  } catch (...) {
    // See the header.
  }
}

}  // namespace octavo
