#include "octavo/parallel/block_driver.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <deque>

#include "octavo/base/error.h"
#include "octavo/memory/account.h"
#include "octavo/memory/released_memory.h"
#include "parallel/step_run.h"

namespace octavo {
namespace {

struct SavedBlock final : Saved {
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

/// Steps of which there is something to compute: none on a rank without units.
int steps_of(const WeightTrip& trip) {
  return trip.units(0).size() == 0 ? 0 : trip.num_steps();
}

/// A rank without units takes part in what moves, in the order of the others' halves; its sums are zeros.
at::Tensor pass_without_units(WeightTrip& trip, Half first, Half second, const at::Tensor& all_NH) {
  trip.half_done(0, first);
  trip.half_done(0, second);
  return at::zeros_like(all_NH.detach());
}

/// Whether the next step is to be projected early, so that its keys and values travel while this one is computed.
bool is_exchanging(const Block& block, const MicroBatch& batch) {
  return block.exchanges_keys_values() && batch.sequence.exchange_takes_time();
}

}  // namespace

at::Tensor BlockDriver::forward(const at::Tensor& x_TH, const Pass& pass, std::unique_ptr<Saved>* saved) {
  const MicroBatch& batch = pass.batch;
  WeightTrip& trip = pass.trip;
  const int num_steps = steps_of(trip);
  auto slot = std::make_shared<WeightSlot>(WeightSlot{&trip});
  auto kept = std::make_unique<SavedBlock>();
  const bool keeps_graph = saved != nullptr && policy_.kind == StashPolicy::Kind::Keep;
  const bool keeps_values = saved != nullptr && policy_.kind != StashPolicy::Kind::Recompute;
  const CategoryScope scope(keeps_values ? MemoryCategory::Activations : MemoryCategory::Workspace);
  kept->x_TH = keeps_graph ? leaf_of(x_TH) : x_TH;
  kept->stashes.assign(num_steps, Stash(saved != nullptr ? &policy_ : nullptr));
  if (keeps_graph) kept->steps.resize(num_steps);

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
    const auto graph = [&](int step) { return keeps_graph ? &kept->steps[step] : nullptr; };
    std::deque<StepRun> runs;  // projected, not mixed
    int num_projected = 0, num_done = 0;
    if (num_steps == 0) sum_NH = pass_without_units(trip, Half::Project, Half::Mix, shared_NH);
    for (int place = 0; place < num_steps; ++place) {
      // What was projected lets more weights travel only when the next step's keys and values do, which are needed
      // first.
      const int last = std::min(place + (is_exchanging(block_, batch) ? 1 : 0), num_steps - 1);
      for (; num_projected <= last; ++num_projected) {
        const int step = trip.step_at(num_projected);
        runs.emplace_back(block_, batch, kept->stashes[step], trip.units(step), WeightRefs(slot, step));
        runs.back().project(shared_NH, graph(step));
        for (; num_done < num_projected; ++num_done) trip.half_done(trip.step_at(num_done), Half::Project);
      }
      if (last == place) trip.half_done(trip.step_at(num_done++), Half::Project);
      const int step = trip.step_at(place);
      const at::Tensor partial_NH = runs.front().mix(graph(step));
      runs.front().end_exchange();
      runs.pop_front();
      trip.half_done(step, Half::Mix);
      const at::NoGradGuard no_grad;
      sum_NH = place == 0 ? partial_NH : sum_NH.add_(partial_NH);
    }
    // Kept whole it would cost as much as all tokens on every rank; backward gathers it again.
    if (keeps_graph && is_gathered) release_memory(shared_NH);
  }
  const at::Tensor sum_TH = batch.exchange.sum(std::move(sum_NH), trip.counts());
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

at::Tensor BlockDriver::backward(std::unique_ptr<Saved> saved, at::Tensor dy_TH, const Pass& pass) {
  auto* kept = dynamic_cast<SavedBlock*>(saved.get());
  internal_check(kept != nullptr, "[parallel] backward of something that this driver did not save");
  const MicroBatch& batch = pass.batch;
  WeightTrip& trip = pass.trip;
  const int num_steps = steps_of(trip);
  const bool has_graph = kept->slot != nullptr;
  if (!has_graph) {
    kept->slot = std::make_shared<WeightSlot>();
    kept->x_TH = leaf_of(kept->x_TH);
    kept->steps.resize(num_steps);
    kept->stashes.resize(num_steps);
  }
  kept->slot->trip = &trip;

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
  std::deque<StepRun> runs;  // begun, not ended
  int num_ended = 0;
  const auto begin = [&](int place) {
    const int step = trip.step_at(place);
    StepRun& run =
        runs.emplace_back(block_, batch, kept->stashes[step], trip.units(step), WeightRefs(kept->slot, step));
    if (has_graph) {
      run.resume(kept->steps[step]);
    } else {
      const at::AutoGradMode grad_mode(true);
      kept->stashes[step].begin_recompute();
      run.project(kept->shared_NH, &kept->steps[step]);
    }
  };
  const auto mix_again = [&](int place) {
    if (has_graph) return;
    const int step = trip.step_at(place);
    const at::AutoGradMode grad_mode(true);
    runs.back().mix(&kept->steps[step]);
    kept->stashes[step] = Stash();  // the graph holds what it still needs
  };
  const auto end = [&] {
    const int step = trip.step_at(num_ended);
    const at::Tensor gradient = runs.front().backward_project(kept->steps[step], kept->shared_NH);
    kept->steps[step] = {};
    runs.pop_front();
    trip.half_done(step, Half::Project);
    dshared_NH = num_ended == 0 ? gradient : dshared_NH.add_(gradient);
    ++num_ended;
  };
  // Where keys and values travel, the next step's do while this one's are used, and the gradients of the last step's
  // while the recomputation of this one, or else its gradients, are at work: of two steps the projection is open.
  const bool ahead = is_exchanging(block_, batch);
  if (num_steps == 0) dshared_NH = pass_without_units(trip, Half::Mix, Half::Project, dy_NH);
  for (int place = 0; place < num_steps; ++place) {
    if (place == 0 || !ahead) {
      begin(place);
      mix_again(place);
    }
    const bool begins_next = ahead && place + 1 < num_steps;
    if (begins_next) {
      if (!has_graph && place > 0) end();  // else the weights of three steps would be here
      begin(place + 1);
    }
    const int step = trip.step_at(place);
    runs[place - num_ended].backward_mix(kept->steps[step], dy_NH);
    trip.half_done(step, Half::Mix);
    if (begins_next) mix_again(place + 1);
    while (num_ended < (begins_next ? place : place + 1)) end();
  }
  kept->shared_NH.reset();
  dy_NH.reset();
  const at::Tensor dshared_TH = batch.exchange.sum(std::move(dshared_NH), trip.counts());
  at::Tensor dx_TH = run_backward({kept->prologue}, {dshared_TH}, {kept->x_TH}).front();
  kept->slot->trip = nullptr;
  return dx_TH.add_(dy_TH);
}

}  // namespace octavo
