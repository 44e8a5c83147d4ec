// What moving tokens, and gradients of weights, takes.
#include "plan/step_memory.h"

namespace octavo {

using enum MemoryPart;

Bytes StepMemory::gathered_bytes(const BlockPass& pass) const {
  if (pass.brings_tokens) return n_.activation(n_.folded);
  return n_.scatters ? n_.activation(n_.between * n_.tensor) : 0;
}

/// Returns what stays.
Bytes StepMemory::gather(const BlockPass& pass, bool attention, MemoryPart part) {
  const Bytes all = gathered_bytes(pass);
  meter_.take(part, all);
  if (!pass.brings_tokens) return all;
  if (n_.scatters) meter_.touch(Workspace, n_.activation(n_.between * n_.tensor));
  if (attention && n_.plan.layout.fold_order == TokenOrder::Zigzag) meter_.touch(part, all);
  return all;
}

void StepMemory::sum(const BlockPass& pass, bool attention) {
  Bytes partial = n_.activation(pass.tokens);
  if (pass.brings_tokens) {
    if (attention && n_.plan.layout.fold_order == TokenOrder::Zigzag) meter_.touch(Workspace, partial);
    meter_.take(Workspace, n_.activation(n_.held));
    meter_.give(Workspace, partial);
    partial = n_.activation(n_.held);
  }
  if (!n_.scatters) return;
  const Bytes filled = n_.activation(n_.between * n_.tensor);
  if (filled != partial) {
    meter_.take(Workspace, filled);
    meter_.give(Workspace, partial);
    partial = filled;
  }
  meter_.take(Workspace, between());
  meter_.give(Workspace, partial);
}

void StepMemory::add_product(std::int64_t elements, bool sends) {
  if (sends) meter_.take(Communication, elements * n_.sum);
  if (n_.narrow) meter_.touch(Workspace, elements * n_.element);
}

void StepMemory::begin_returns() {
  meter_.give(Communication, sent_before_);
  sent_before_ = sent_now_;
  sent_now_ = 0;
}

Bytes StepMemory::foreign_rows(const BlockPass& pass, std::int64_t elements_per_unit, bool backward) const {
  if (n_.fold == 1 || pass.owns_steps) return 0;
  if (pass.brings_tokens) return pass.units * elements_per_unit * (n_.element + (backward ? n_.sum : 0));
  return 2 * pass.units_of(0) * elements_per_unit * n_.element;  // of two steps
}

void StepMemory::begin_forward(const BlockPass& pass, bool attention) {
  meter_.take(Activations, between() + statistics());
  if (!n_.keeps_graph) meter_.give(Activations, statistics());
  if (gather(pass, attention, Activations) > 0 && !n_.keeps_graph) meter_.give(Activations, between());
}

void StepMemory::end_forward(const BlockPass& pass, bool attention) {
  // Kept is what is held between blocks; what was gathered is gathered again.
  const Bytes gathered = gathered_bytes(pass);
  meter_.give(Activations, gathered > 0 || n_.keeps_graph ? gathered : between());
  sum(pass, attention);
  meter_.take(Activations, between());
  meter_.give(Workspace, between());
}

Bytes StepMemory::begin_backward(const BlockPass& pass, bool attention) {
  if (!n_.keeps_graph) meter_.take(Workspace, between() + statistics());
  if (gather(pass, attention, Workspace) > 0) meter_.give(n_.keeps_graph ? Activations : Workspace, between());
  return gather(pass, attention, Workspace);
}

void StepMemory::end_backward(const BlockPass& pass, bool attention, Bytes gathered_gradient) {
  const bool gathered = is_gathered(pass);
  meter_.give(n_.keeps_graph && !gathered ? Activations : Workspace, gathered ? gathered_bytes(pass) : between());
  meter_.give(Workspace, gathered_gradient);
  sum(pass, attention);
  meter_.touch(Workspace, between());  // the gradient of the block's input, which takes the place of the sum
  meter_.give(n_.keeps_graph ? Activations : Workspace, statistics());
  meter_.give(Activations, between());
  // The gradient of its output gives way to that of its input.
  meter_.give(Workspace, between());
}

}  // namespace octavo
