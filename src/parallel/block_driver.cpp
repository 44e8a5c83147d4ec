#include "octavo/parallel/block_driver.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "octavo/base/error.h"
#include "octavo/memory/account.h"
#include "parallel/released_memory.h"
#include "parallel/step_run.h"

namespace octavo {
namespace {

struct SavedBlock final : Saved {
  const MicroBatch* batch = nullptr;
  at::Tensor x_TH;             // the residual stream before the block; a leaf of the prologue's graph under `keep`
  std::vector<Stash> stashes;  // per step

  // Only under `keep`: the graphs of the prologue and of each step.
  std::shared_ptr<WeightSlot> slot;
  at::Tensor shared_TH;  // what the prologue gave
  at::Tensor shared_NH;  // the same of all tokens: the leaf of the steps' graphs; without memory if it was gathered
  Edge prologue;
  std::vector<StepGraph> steps;
};

/// What the units need of all tokens, from the part that is held here.
at::Tensor gather(const at::Tensor& part, const MicroBatch& batch) {
  const at::NoGradGuard no_grad;
  const CategoryScope scope(MemoryCategory::Workspace);
  return batch.exchange.gather(part);
}

}  // namespace

at::Tensor BlockDriver::forward(const at::Tensor& x_TH, const MicroBatch& batch, std::unique_ptr<Saved>* saved) {
  const std::unique_ptr<WeightTrip> trip = flow_.begin(Direction::Forward, batch.index);
  auto slot = std::make_shared<WeightSlot>(WeightSlot{trip.get()});
  auto kept = std::make_unique<SavedBlock>();
  kept->batch = &batch;
  const bool keeps_graph = saved != nullptr && policy_.kind == StashPolicy::Kind::Keep;
  const bool keeps_values = saved != nullptr && policy_.kind != StashPolicy::Kind::Recompute;
  const CategoryScope scope(keeps_values ? MemoryCategory::Activations : MemoryCategory::Workspace);
  kept->x_TH = keeps_graph ? leaf_of(x_TH) : x_TH;

  at::Tensor sum_NH;
  {
    const at::AutoGradMode grad_mode(keeps_graph);
    at::Tensor shared_TH = block_.prologue(kept->x_TH, WeightRefs(slot, 0));
    if (keeps_graph) {
      kept->prologue = edge_of(shared_TH);
      shared_TH = shared_TH.detach();
    }
    at::Tensor shared_NH = gather(shared_TH, batch);
    const bool is_gathered = !shared_NH.is_same(shared_TH);
    if (keeps_graph) {
      kept->shared_TH = shared_TH;
      kept->shared_NH = shared_NH = leaf_of(shared_NH);
    }
    shared_TH.reset();
    for (int step = 0; step < trip->num_steps(); ++step) {
      kept->stashes.emplace_back(saved != nullptr ? &policy_ : nullptr);
      StepGraph* graph = keeps_graph ? &kept->steps.emplace_back() : nullptr;
      StepRun run(block_, batch, kept->stashes.back(), trip->units(step), WeightRefs(slot, step));
      run.project(shared_NH, graph);
      const at::Tensor partial_NH = run.mix(graph);
      run.end_exchange();
      trip->step_done(step);
      const at::NoGradGuard no_grad;
      sum_NH = step == 0 ? partial_NH : sum_NH.add_(partial_NH);
    }
    // Kept whole it would cost as much as all tokens on every rank; backward gathers it again.
    if (keeps_graph && is_gathered) release_memory(shared_NH);
  }
  trip->finish();
  const at::Tensor sum_TH = batch.exchange.sum(std::move(sum_NH), trip->counts());
  slot->trip = nullptr;
  // The output is the next block's input, which every policy keeps.
  const CategoryScope output_scope(saved != nullptr ? MemoryCategory::Activations : MemoryCategory::Workspace);
  at::Tensor y_TH = at::add(x_TH, sum_TH);
  if (saved != nullptr) {
    if (keeps_graph) kept->slot = std::move(slot);
    *saved = std::move(kept);
  }
  return y_TH;
}

at::Tensor BlockDriver::backward(std::unique_ptr<Saved> saved, at::Tensor dy_TH) {
  auto* kept = dynamic_cast<SavedBlock*>(saved.get());
  internal_check(kept != nullptr, "[parallel] backward of something that this driver did not save");
  const MicroBatch& batch = *kept->batch;
  const std::unique_ptr<WeightTrip> trip = flow_.begin(Direction::Backward, batch.index);
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
    kept->shared_NH = leaf_of(gather(shared_TH.detach(), batch));
  } else if (const at::Tensor again_NH = gather(kept->shared_TH, batch); !again_NH.is_same(kept->shared_TH)) {
    restore_memory(kept->shared_NH, again_NH);
  }
  kept->shared_TH.reset();
  at::Tensor dy_NH = gather(dy_TH, batch);
  at::Tensor dshared_NH;
  for (int step = 0; step < trip->num_steps(); ++step) {
    StepGraph graph;
    StepRun run(block_, batch, kept->stashes[step], trip->units(step), WeightRefs(kept->slot, step));
    if (has_graph) {
      graph = std::move(kept->steps[step]);
      run.resume(graph);
    } else {
      const at::AutoGradMode grad_mode(true);
      kept->stashes[step].begin_recompute();
      run.project(kept->shared_NH, &graph);
      run.mix(&graph);
      kept->stashes[step] = Stash();  // the graph holds what it still needs
    }
    const at::Tensor gradient = run.backward(std::move(graph), dy_NH, kept->shared_NH);
    trip->step_done(step);
    dshared_NH = step == 0 ? gradient : dshared_NH.add_(gradient);
  }
  trip->finish();
  kept->shared_NH.reset();
  dy_NH.reset();
  const at::Tensor dshared_TH = batch.exchange.sum(std::move(dshared_NH), trip->counts());
  at::Tensor dx_TH = run_backward({kept->prologue}, {dshared_TH}, {kept->x_TH}).front();
  kept->slot->trip = nullptr;
  return dx_TH.add_(dy_TH);
}

}  // namespace octavo
