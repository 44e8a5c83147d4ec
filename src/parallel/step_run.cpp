#include "parallel/step_run.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "octavo/memory/account.h"

namespace octavo {
Edge edge_of(const at::Tensor& tensor) {
  return torch::autograd::impl::gradient_edge(tensor);
}

at::Tensor leaf_of(const at::Tensor& value) {
  return value.detach().requires_grad_(true);
}

std::vector<at::Tensor> run_backward(const std::vector<Edge>& outputs, const std::vector<at::Tensor>& gradients,
                                     const std::vector<at::Tensor>& leaves) {
  std::vector<Edge> inputs;
  for (const at::Tensor& leaf : leaves) inputs.push_back(edge_of(leaf));
  return torch::autograd::Engine::get_default_engine().execute(outputs, gradients, /*keep_graph=*/false,
                                                               /*create_graph=*/false, /*accumulate_grad=*/false,
                                                               inputs);
}

StepRun::StepRun(const Block& block, const MicroBatch& batch, Stash& stash, UnitRange units, WeightRefs weights)
    : block_(block),
      batch_(batch),
      context_{batch.sequence, stash, block.exchanges_keys_values() ? std::make_shared<KeyValueSlot>() : nullptr},
      units_(units),
      weights_(std::move(weights)) {}

void StepRun::project(const at::Tensor& shared_NH, StepGraph* graph) {
  projected_ = block_.project(shared_NH, units_, weights_, context_);
  if (graph != nullptr) {
    for (at::Tensor& value : projected_) {
      graph->projected.push_back(edge_of(value));
      value = leaf_of(value);
    }
    graph->leaves = projected_;
    graph->keys_values = context_.keys_values;
  }
  start_exchange(projected_);
}

at::Tensor StepRun::mix(StepGraph* graph) {
  const at::Tensor partial_NH = block_.mix(projected_, units_, weights_, context_);
  if (graph != nullptr) graph->partial = edge_of(partial_NH);
  projected_.clear();
  return partial_NH.detach();
}

void StepRun::end_exchange() {
  if (context_.keys_values) context_.keys_values->exchange = nullptr;
  exchange_.reset();
}

void StepRun::resume(const StepGraph& graph) {
  context_.keys_values = graph.keys_values;
  start_exchange(graph.leaves);
}

void StepRun::backward_mix(StepGraph& graph, const at::Tensor& dy_NH) {
  dprojected_ = run_backward({graph.partial}, {dy_NH}, graph.leaves);
  // The graph's edges hold its leaves.
  graph.partial = Edge();
  graph.leaves.clear();
}

at::Tensor StepRun::backward_project(StepGraph& graph, const at::Tensor& shared_NH) {
  if (exchange_) exchange_->finish();
  end_exchange();
  const std::vector<at::Tensor> dprojected = std::move(dprojected_);
  return run_backward(graph.projected, dprojected, {shared_NH}).front();
}

void StepRun::start_exchange(const std::vector<at::Tensor>& projected) {
  if (!context_.keys_values) return;
  const at::NoGradGuard no_grad;
  const CategoryScope scope(MemoryCategory::Workspace);
  exchange_ = batch_.sequence.exchange(projected[projected_attention::kKey].detach(),
                                       projected[projected_attention::kValue].detach());
  context_.keys_values->exchange = exchange_.get();
}

}  // namespace octavo
