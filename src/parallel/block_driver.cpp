#include "octavo/parallel/block_driver.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "octavo/base/error.h"
#include "octavo/memory/account.h"

namespace octavo {
namespace {

using torch::autograd::Edge;

/// A value whose graph is kept and whose memory is not.
Edge edge_of(const at::Tensor& tensor) {
  return torch::autograd::impl::gradient_edge(tensor);
}

/// The gradient that `dy`, arriving at `output`, sends to `leaf`; frees the graph between them.
at::Tensor run_backward(const Edge& output, const at::Tensor& dy, const at::Tensor& leaf) {
  auto gradients = torch::autograd::Engine::get_default_engine().execute(
      {output}, {dy}, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false, {edge_of(leaf)});
  return gradients.front();
}

at::Tensor leaf_of(const at::Tensor& value) {
  return value.detach().requires_grad_(true);
}

struct SavedBlock final : Saved {
  int micro_batch = 0;
  SequenceContext* sequence = nullptr;
  at::Tensor x_TH;             // the residual stream before the block; a leaf of the prologue's graph under `keep`
  std::vector<Stash> stashes;  // per step

  // Only under `keep`: the graphs of the prologue and of each step's partial.
  std::shared_ptr<WeightSlot> slot;
  at::Tensor shared_leaf;
  Edge prologue;
  std::vector<Edge> partials;
};

}  // namespace

at::Tensor BlockDriver::forward(const at::Tensor& x_TH, int micro_batch, SequenceContext& sequence,
                                std::unique_ptr<Saved>* saved) {
  const std::unique_ptr<Trip> trip = flow_.begin(Direction::Forward, micro_batch);
  auto slot = std::make_shared<WeightSlot>(WeightSlot{trip.get()});
  auto kept = std::make_unique<SavedBlock>();
  kept->micro_batch = micro_batch;
  kept->sequence = &sequence;
  const bool keeps_graph = saved != nullptr && policy_.kind == StashPolicy::Kind::Keep;
  const bool keeps_values = saved != nullptr && policy_.kind != StashPolicy::Kind::Recompute;
  const CategoryScope scope(keeps_values ? MemoryCategory::Activations : MemoryCategory::Workspace);
  kept->x_TH = keeps_graph ? leaf_of(x_TH) : x_TH;

  at::Tensor y_TH;
  {
    const at::AutoGradMode grad_mode(keeps_graph);
    at::Tensor shared_TH = block_.prologue(kept->x_TH, WeightRefs(slot, 0));
    if (keeps_graph) {
      kept->prologue = edge_of(shared_TH);
      shared_TH = leaf_of(shared_TH);
      kept->shared_leaf = shared_TH;
    }
    for (int step = 0; step < trip->num_steps(); ++step) {
      kept->stashes.emplace_back(saved != nullptr ? &policy_ : nullptr);
      BlockContext context{sequence, kept->stashes.back()};
      const at::Tensor partial_TH = block_.partial(shared_TH, trip->units(step), WeightRefs(slot, step), context);
      if (keeps_graph) kept->partials.push_back(edge_of(partial_TH));
      const at::NoGradGuard no_grad;
      // The output is the next block's input, which every policy keeps.
      const CategoryScope output_scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
      y_TH = step == 0 ? at::add(x_TH, partial_TH) : y_TH.add_(partial_TH);
    }
  }
  slot->trip = nullptr;
  if (saved != nullptr) {
    if (keeps_graph) kept->slot = std::move(slot);
    *saved = std::move(kept);
  }
  return y_TH;
}

at::Tensor BlockDriver::backward(std::unique_ptr<Saved> saved, at::Tensor dy_TH) {
  auto* kept = dynamic_cast<SavedBlock*>(saved.get());
  internal_check(kept != nullptr, "[parallel] backward of something that this driver did not save");
  const std::unique_ptr<Trip> trip = flow_.begin(Direction::Backward, kept->micro_batch);
  const bool has_graph = kept->slot != nullptr;
  if (!has_graph) {
    kept->slot = std::make_shared<WeightSlot>();
    kept->x_TH = leaf_of(kept->x_TH);
  }
  kept->slot->trip = trip.get();

  if (!has_graph) {
    const at::AutoGradMode grad_mode(true);
    const at::Tensor shared_TH = block_.prologue(kept->x_TH, WeightRefs(kept->slot, 0));
    kept->prologue = edge_of(shared_TH);
    kept->shared_leaf = leaf_of(shared_TH);
  }
  at::Tensor dshared_TH;
  for (int step = 0; step < trip->num_steps(); ++step) {
    if (!has_graph) {
      const at::AutoGradMode grad_mode(true);
      kept->stashes[step].begin_recompute();
      BlockContext context{*kept->sequence, kept->stashes[step]};
      kept->partials.push_back(
          edge_of(block_.partial(kept->shared_leaf, trip->units(step), WeightRefs(kept->slot, step), context)));
      kept->stashes[step] = Stash();  // the graph holds what it still needs
    }
    const at::Tensor gradient = run_backward(kept->partials[step], dy_TH, kept->shared_leaf);
    kept->partials[step] = Edge();
    dshared_TH = step == 0 ? gradient : dshared_TH.add_(gradient);
  }
  kept->shared_leaf.reset();
  at::Tensor dx_TH = run_backward(kept->prologue, dshared_TH, kept->x_TH);
  kept->slot->trip = nullptr;
  return dx_TH.add_(dy_TH);
}

}  // namespace octavo
