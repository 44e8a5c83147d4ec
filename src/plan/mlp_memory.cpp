// What a gated MLP has in memory.
#include "plan/step_memory.h"

namespace octavo {

using enum MemoryPart;

Bytes StepMemory::dispatched(const LayerSizes& sizes, const BlockPass& pass) const {
  if (sizes.num_experts == 0) return 0;
  return sizes.experts_per_token * n_.activation(pass.tokens) / n_.tensor +
         pass.tokens * sizes.num_experts * n_.statistic;
}

void StepMemory::mlp_forward(const LayerSizes& sizes, const LayerNumbers& layer) {
  meter_.enter(PeakPlace::FfnForward);
  const BlockPass& pass = layer.ffn_forward;
  begin_forward(pass, false);
  const Bytes rows = dispatched(sizes, pass);
  if (n_.expert > 1) meter_.touch(Communication, 2 * rows);  // sent and received
  meter_.take(Activations, rows);
  meter_.touch(Workspace, rows);  // the experts' outputs, before they are summed per token
  run_steps(pass, [&](std::int64_t i) {
    const Bytes features = pass.tokens * pass.units_of(i) * n_.element;
    meter_.take(Activations, 3 * features);
    if (!n_.keeps_graph && !n_.keeps_gate_up) meter_.give(Activations, 2 * features);
    meter_.take(Workspace, n_.activation(pass.tokens));
    if (!n_.keeps_graph) meter_.give(Activations, features);
    if (i > 0) meter_.give(Workspace, n_.activation(pass.tokens));
  });
  if (!n_.keeps_graph) meter_.give(Activations, rows);
  end_forward(pass, false);
}

void StepMemory::mlp_backward(const LayerSizes& sizes, const LayerNumbers& layer) {
  meter_.enter(PeakPlace::FfnBackward);
  const BlockPass& pass = layer.ffn_backward;
  const Bytes gathered_gradient = begin_backward(pass, false);
  const Bytes rows = dispatched(sizes, pass);
  if (!n_.keeps_graph) meter_.take(Activations, rows);
  if (n_.expert > 1) meter_.touch(Communication, 2 * rows);
  meter_.take(Workspace, rows);  // their gradients
  run_steps(pass, [&](std::int64_t i) {
    const Bytes features = pass.tokens * pass.units_of(i) * n_.element;
    // Of experts one matrix at a time, but those that travel go by all of a step's.
    const std::int64_t of_experts = pass.folds ? layer.expert_elements / 3 : layer.expert_step;
    const std::int64_t elements = layer.expert_step > 0 ? of_experts : pass.units_of(i) * n_.model.hidden_size();
    const bool sends = pass.folds && i + 1 < pass.steps;  // its own part comes last
    if (!n_.keeps_graph) meter_.take(Activations, (n_.keeps_gate_up ? 1 : 3) * features);
    if (pass.folds) begin_returns();
    add_product(elements, sends);
    meter_.take(Workspace, features);  // the gradient of the product
    meter_.give(Activations, features);
    if (sends) send(elements);
    meter_.take(Workspace, 2 * features);  // those of gate and up
    meter_.give(Activations, 2 * features);
    add_product(elements, sends);
    meter_.take(Workspace, n_.activation(pass.tokens));
    meter_.give(Workspace, features);
    add_product(elements, sends);
    meter_.give(Workspace, 2 * features);
    if (i > 0) meter_.give(Workspace, n_.activation(pass.tokens));
    if (sends) send(2 * elements);
  });
  meter_.give(Workspace, rows);
  meter_.give(Activations, rows);
  end_backward(pass, false, gathered_gradient);
}

}  // namespace octavo
