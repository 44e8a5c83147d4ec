// One step of one pass of a block: the graphs of its two halves, and the exchange of keys and values between them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <vector>

#include "octavo/parallel/block_driver.h"

namespace octavo {

using torch::autograd::Edge;

/// A value whose graph is kept and whose memory is not.
Edge edge_of(const at::Tensor& tensor);

/// The value as the beginning of a new graph.
at::Tensor leaf_of(const at::Tensor& value);

/// The gradients that `gradients`, arriving at `outputs`, send to `leaves`; frees the graph between them.
std::vector<at::Tensor> run_backward(const std::vector<Edge>& outputs, const std::vector<at::Tensor>& gradients,
                                     const std::vector<at::Tensor>& leaves);

/// The two graphs of a step, from what the units share to what is projected, and from there to the partial sum.
struct StepGraph {
  std::vector<Edge> projected;     // ends of the first
  std::vector<at::Tensor> leaves;  // beginnings of the second, the projected values
  Edge partial;                    // end of the second
  std::shared_ptr<KeyValueSlot> keys_values;
};

/// Forward: project(), mix(), end_exchange(). Backward: resume() with the graph that forward kept, or project() and
/// mix() again; then backward_mix(), backward_project().
class StepRun {
 public:
  /// `stash` must outlive this.
  StepRun(const Block& block, const MicroBatch& batch, Stash& stash, UnitRange units, WeightRefs weights);

  /// The first half, and the start of its exchange. With `graph`, keeps there what the backward needs.
  void project(const at::Tensor& shared_NH, StepGraph* graph);
  /// The second half, [N, H].
  at::Tensor mix(StepGraph* graph);
  /// Lets the exchange's memory go: after a forward.
  void end_exchange();

  /// For the backward of a graph that forward left: the exchange anew.
  void resume(const StepGraph& graph);
  /// From the gradient of the partial sum to those of what was projected, which are on their way when this returns.
  void backward_mix(StepGraph& graph, const at::Tensor& dy_NH);
  /// And to that of what the units share, [N, H].
  at::Tensor backward_project(StepGraph& graph, const at::Tensor& shared_NH);

 private:
  void start_exchange(const std::vector<at::Tensor>& projected);

  const Block& block_;
  const MicroBatch& batch_;
  BlockContext context_;
  UnitRange units_;
  WeightRefs weights_;
  Projected projected_;
  std::vector<at::Tensor> dprojected_;
  std::unique_ptr<KeyValueExchange> exchange_;
};

}  // namespace octavo
