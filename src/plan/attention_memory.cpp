// What an attention block has in memory. Its backward opens a step before it closes the last where keys and values
// travel meanwhile (parallel/block_driver.cpp).
#include <algorithm>

#include "plan/step_memory.h"

namespace octavo {

using enum MemoryPart;

namespace {

// ops/attention.h
constexpr std::int64_t kQueryBlock = 64, kKeyBlock = 256, kKeyStripe = 4096, kPadding = 16;

std::int64_t stripe(std::int64_t keys) {
  return (std::min(keys, kKeyStripe) + kPadding - 1) / kPadding * kPadding + kPadding;
}

}  // namespace

StepMemory::Heads StepMemory::heads(const LayerSizes& sizes, const LayerNumbers& layer, const BlockPass& pass,
                                    std::int64_t kv_heads, bool keeps_graph) const {
  Heads heads{};
  const bool cuts = n_.sequence > 1, ring = cuts && n_.sequence_form == SequenceForm::Ring && !pass.folds;
  const bool ulysses = cuts && n_.sequence_form == SequenceForm::Ulysses && !pass.folds;
  const std::int64_t hidden = n_.model.hidden_size();
  heads.kv_heads = kv_heads;
  heads.tokens = pass.tokens;
  heads.exchanges = sizes.softmax && (pass.folds || (cuts && !ulysses));
  heads.keeps_graph = keeps_graph;
  heads.query = pass.tokens * heads.kv_heads * layer.query_rows * n_.element;
  heads.key = pass.tokens * heads.kv_heads * layer.key_rows * n_.element;
  heads.statistics = pass.tokens * heads.kv_heads * (layer.query_rows / sizes.head_dim) * n_.statistic;
  heads.product = pass.tokens * heads.kv_heads * layer.panel_rows * n_.element;
  heads.extra = sizes.extra_queries * heads.query + sizes.extra_keys * heads.key;
  const std::int64_t keys = ring || !heads.exchanges ? pass.tokens : n_.positions;
  if (heads.exchanges) {
    const Bytes keys_values = 2 * keys * heads.kv_heads * layer.key_rows * n_.element;
    heads.arriving = keys_values;
    heads.gathered = ring ? 2 * keys_values : keys_values;
    heads.gradients = ring ? 2 * keys_values / n_.element * n_.sum : keys_values;
    heads.returning = keys_values;
  }
  if (ulysses && sizes.softmax) heads.swapped = 2 * (heads.query + heads.key);
  heads.query_elements = heads.kv_heads * layer.query_rows * hidden;
  heads.elements = heads.kv_heads * layer.panel_rows * hidden;
  if (!sizes.softmax) return heads;
  const Bytes o = n_.operand, s = n_.statistic, width = sizes.head_dim, block = kKeyBlock * kQueryBlock;
  const Bytes narrow_block = n_.narrow ? block * o : 0;
  heads.forward_scratch =
      width * (2 * stripe(keys) + kQueryBlock) * o + block * s + narrow_block + width * kQueryBlock * s;
  heads.backward_scratch = width * (3 * stripe(keys) + 4 * kQueryBlock) * o + 2 * block * s + 3 * narrow_block +
                           width * (2 * stripe(keys) + kQueryBlock) * s;
  return heads;
}

StepMemory::StepHeads StepMemory::step_heads(const LayerSizes& sizes, const LayerNumbers& layer, const BlockPass& pass,
                                             bool keeps_graph) const {
  const std::int64_t least = pass.units / pass.steps, num_early = pass.units % pass.steps;
  const Heads late = heads(sizes, layer, pass, least, keeps_graph);
  return {num_early > 0 ? heads(sizes, layer, pass, least + 1, keeps_graph) : late, late, num_early};
}

void StepMemory::project(const LayerSizes& sizes, const Heads& heads, bool again) {
  if (!(again && n_.keeps_projection)) meter_.take(Workspace, heads.product);
  const Bytes norms = sizes.qk_norm ? heads.statistics + heads.tokens * heads.kv_heads * n_.statistic : 0;
  if (sizes.qk_norm) meter_.take(Workspace, heads.query + heads.key + norms);
  meter_.take(Activations, heads.projection() + heads.extra);
  if (sizes.qk_norm) meter_.give(Workspace, heads.query + heads.key + (heads.keeps_graph ? 0 : norms));
  if (!(heads.keeps_graph && sizes.qk_norm) && !n_.keeps_projection) meter_.give(Workspace, heads.product);
  meter_.take(Workspace, heads.arriving);
}

void StepMemory::mix(const Heads& heads, bool again) {
  meter_.take(Workspace, heads.gathered);
  meter_.give(Workspace, heads.arriving);
  if (!(again && n_.keeps_attention)) {
    meter_.take(Workspace, heads.swapped);
    meter_.take(Activations, heads.query + heads.statistics);
    meter_.touch(Workspace, heads.forward_scratch);
    meter_.give(Workspace, heads.swapped);
  }
  if (again) return;
  const bool drops = !heads.keeps_graph && !n_.keeps_attention;
  if (drops) meter_.give(Activations, heads.statistics);
  meter_.take(Workspace, n_.activation(heads.tokens));
  if (drops) meter_.give(Activations, heads.query);
  if (!heads.keeps_graph) meter_.give(Activations, heads.projection() + heads.extra);
  meter_.give(Workspace, heads.gathered);
}

void StepMemory::backward_mix(const Heads& heads, bool gathers, bool sends) {
  add_product(heads.query_elements, sends);
  meter_.take(Workspace, heads.query + heads.swapped);
  if (gathers) {
    meter_.take(Workspace, heads.gathered);
    meter_.give(Workspace, heads.arriving);
  }
  const Bytes gradients = heads.exchanges ? heads.gradients : 2 * heads.key;
  meter_.take(Workspace, heads.query + gradients);
  meter_.touch(Workspace, heads.backward_scratch);
  if (heads.exchanges) {
    meter_.take(Workspace, heads.returning + 2 * heads.key);
    meter_.give(Workspace, gradients + heads.gathered);
    meter_.give(Activations, 2 * heads.key);
  }
  meter_.give(Workspace, heads.query + heads.swapped);
  meter_.give(Activations, 2 * heads.query + heads.statistics);
  if (sends) send(heads.query_elements);
}

void StepMemory::backward_project(const LayerSizes& sizes, const Heads& heads, bool first, bool sends) {
  meter_.give(Workspace, heads.returning);
  if (!heads.exchanges) meter_.give(Activations, 2 * heads.key);
  meter_.take(Workspace, heads.product);
  if (sizes.qk_norm) {
    meter_.touch(Workspace, 2 * (heads.query + heads.key));
    meter_.give(Workspace, heads.product + heads.statistics + heads.tokens * heads.kv_heads * n_.statistic);
  }
  add_product(heads.elements, sends);
  meter_.take(Workspace, n_.activation(heads.tokens));
  meter_.give(Workspace, heads.projection() + heads.product);
  meter_.give(Activations, heads.extra);
  if (!first) meter_.give(Workspace, n_.activation(heads.tokens));
  if (sends) send(heads.elements);
}

void StepMemory::attention_forward(const LayerSizes& sizes, const LayerNumbers& layer) {
  meter_.enter(PeakPlace::MixerForward);
  const BlockPass& pass = layer.mixer_forward;
  const StepHeads step = step_heads(sizes, layer, pass, n_.keeps_graph);
  const Bytes foreign = foreign_rows(pass, (layer.panel_rows + layer.query_rows) * n_.model.hidden_size(), false);
  meter_.take(Communication, foreign);
  begin_forward(pass, true);
  const bool ahead = step(0).exchanges;
  std::int64_t num_projected = 0;
  for (std::int64_t i = 0; i < pass.steps; ++i) {
    const std::int64_t last = std::min(i + (ahead ? 1 : 0), pass.steps - 1);
    for (; num_projected <= last; ++num_projected) project(sizes, step(num_projected), false);
    mix(step(i), false);
    if (i > 0) meter_.give(Workspace, n_.activation(pass.tokens));
  }
  end_forward(pass, true);
  meter_.give(Communication, foreign);
}

void StepMemory::attention_backward(const LayerSizes& sizes, const LayerNumbers& layer, bool owns_first) {
  meter_.enter(PeakPlace::MixerBackward);
  const BlockPass& pass = layer.mixer_backward;
  const bool recomputes = !n_.keeps_graph;
  const StepHeads step = step_heads(sizes, layer, pass, true);
  const auto sends = [&](std::int64_t i) {
    const std::int64_t own_steps = std::max<std::int64_t>(1, pass.steps / n_.fold);
    const bool owns = pass.owns_steps && (owns_first ? i < own_steps : i >= pass.steps - own_steps);
    return pass.folds && !owns;
  };
  const Bytes foreign = foreign_rows(pass, (layer.panel_rows + layer.query_rows) * n_.model.hidden_size(), true);
  meter_.take(Communication, foreign);
  const Bytes gathered_gradient = begin_backward(pass, true);
  std::int64_t num_ended = 0;
  const auto begin = [&](std::int64_t i) {
    if (recomputes) {
      project(sizes, step(i), true);
    } else {
      meter_.take(Workspace, step(i).arriving);
    }
  };
  const auto mix_again = [&](std::int64_t i) {
    if (!recomputes) return;
    const Heads& current = step(i);
    mix(current, true);
    if (n_.keeps_projection && !sizes.qk_norm) meter_.give(Workspace, current.product);
  };
  const auto end = [&] {
    backward_project(sizes, step(num_ended), num_ended == 0, sends(num_ended));
    ++num_ended;
  };
  const bool ahead = step(0).exchanges;
  for (std::int64_t i = 0; i < pass.steps; ++i) {
    if (i == 0 || !ahead) {
      begin(i);
      mix_again(i);
    }
    const bool begins_next = ahead && i + 1 < pass.steps;
    if (begins_next) {
      if (recomputes && i > 0) end();
      begin(i + 1);
    }
    if (pass.folds) begin_returns();
    backward_mix(step(i), !recomputes, sends(i));
    if (begins_next) mix_again(i + 1);
    while (num_ended < (begins_next ? i : i + 1)) end();
  }
  end_backward(pass, true, gathered_gradient);
  meter_.give(Communication, foreign);
}

}  // namespace octavo
