#include "plan/step_numbers.h"

#include <algorithm>
#include <numeric>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/token_spans.h"

namespace octavo {
namespace {

constexpr std::int64_t kAlignment = 32;  // elements, as layout/placement.h

std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t aligned(std::int64_t elements) {
  return divided_up(elements, kAlignment) * kAlignment;
}

/// layout/fold_choice.h: whether activations would make the busiest rank compute notably longer than weights do.
bool is_lopsided(std::int64_t units, int degree) {
  return 20 * divided_up(units, degree) * degree > 21 * units;
}

/// Of bytes in each direction, whether activations are chosen.
struct Choice {
  bool forward, backward;
};
Choice choose(Bytes weights_forward, Bytes weights_backward, Bytes activations_forward, Bytes activations_backward,
              bool apart) {
  if (apart) return {activations_forward < weights_forward, activations_backward < weights_backward};
  const bool both = activations_forward + activations_backward < weights_forward + weights_backward;
  return {both, both};
}

}  // namespace

StepNumbers::StepNumbers(const MemoryModel& the_model, const StepPlan& the_plan) : model(the_model), plan(the_plan) {
  const Layout& layout = plan.layout;
  data = layout.mesh.size(Axis::Data);
  tensor = layout.mesh.size(Axis::Tensor);
  fold = layout.mesh.size(Axis::Fold);
  sequence = layout.mesh.size(Axis::Sequence);
  pipeline = layout.mesh.size(Axis::Pipeline);
  expert = layout.mesh.size(Axis::Expert);
  if (plan.micro_batch < 1) {
    throw UsageError(cat("[plan] micro-batch ", plan.micro_batch, ": a rank takes at least 1 sequence at once"));
  }
  zero_ranks = layout.zero == ZeroStage::None ? 1 : std::int64_t{data} * expert * sequence;
  scatters = layout.tensor_form == TensorForm::Scatter && tensor > 1;
  keeps_graph = plan.stash.kind == StashPolicy::Kind::Keep;
  const bool named = plan.stash.kind == StashPolicy::Kind::Named;
  keeps_attention = named && plan.stash.keeps("attention");
  keeps_projection = named && plan.stash.keeps("qkv");
  keeps_gate_up = named && plan.stash.keeps("gate_up");

  const ElementType compute = model.job().compute;
  element = element_bytes(compute);
  sum = element_bytes(sum_type(compute));
  statistic = sum;
  operand = element;
  narrow = element != sum;

  const std::int64_t here = divided_up(model.job().batch, std::int64_t{data} * expert);
  sequences = std::min(plan.micro_batch, here);
  micro_batches = divided_up(here, sequences);
  const TokenCut cut{fold > 1 ? layout.fold_order : layout.sequence_order, sequence * fold};
  positions = sequences * cut.padded_length(model.job().sequence_length);
  folded = positions / sequence;
  held = folded / fold;
  between = scatters ? divided_up(held, tensor) : held;
  rows = share(model.vocab_size(), 1, "vocabulary rows").units;

  sequence_form = layout.sequence_form;
  if (sequence_form == SequenceForm::Auto) {
    const bool divides = std::all_of(model.kinds().begin(), model.kinds().end(), [&](const LayerSizes& sizes) {
      return !sizes.softmax || sizes.num_units % (std::int64_t{sequence} * tensor) == 0;
    });
    sequence_form = divides ? SequenceForm::Ulysses : SequenceForm::Gather;
  }

  // The ends' forms (layout/fold_choice.h); weights are read where they lie.
  const Bytes all = activation(folded), returned = rows * model.hidden_size() * sum;
  const bool lopsided = is_lopsided(rows, fold);
  embedding_forward = pass(false, rows);
  embedding_backward = pass(fold > 1 && !lopsided && all < returned, rows);
  const bool loss_by_tokens = layout.fold_form == FoldForm::Auto
                                  ? !lopsided && 2 * all + Bytes{fold} * 2 * folded * sum < returned
                                  : layout.fold_form == FoldForm::Activations;
  head = pass(fold > 1 && loss_by_tokens, rows);
  head.steps = head.folds ? fold : 1;
  for (const LayerSizes& sizes : model.kinds()) layers.push_back(layer(sizes));
}

StepNumbers::Share StepNumbers::share(std::int64_t units, std::int64_t parts, const char* what) const {
  if (units % tensor == 0) return {units / tensor};
  switch (plan.layout.misfit) {
    case Misfit::Refuse:
      throw UsageError(cat("[plan] ", units, " ", what, " over tensor=", tensor,
                           " do not divide; say how to run it: tensor=", tensor, ":replicate or tensor=", tensor,
                           ":pad"));
    case Misfit::Replicate: {
      const std::int64_t shares = std::gcd(units, std::int64_t{tensor}), replicas = tensor / shares;
      return {units / shares, replicas, parts % replicas == 0};
    }
    case Misfit::Pad:
      return {divided_up(units, tensor)};
  }
  throw InternalError("[plan] unknown way to treat a misfit");
}

BlockPass StepNumbers::pass(bool brings_tokens, std::int64_t units) const {
  BlockPass pass;
  pass.brings_tokens = brings_tokens;
  pass.folds = fold > 1 && !brings_tokens;
  pass.tokens = brings_tokens ? folded : held;
  pass.units = brings_tokens ? divided_up(units, fold) : units;
  pass.owns_steps = units % fold == 0;
  return pass;
}

/// parallel/local_flow.h, recommended_steps().
std::int64_t StepNumbers::local_steps(std::int64_t wanted, std::int64_t most) const {
  return keeps_graph ? 1 : std::clamp<std::int64_t>(wanted, 1, most);
}

LayerNumbers StepNumbers::layer(const LayerSizes& sizes) const {
  constexpr std::int64_t kFewestFeatures = 512, kFewestQueryRows = 256, kMostSteps = 8;
  const std::int64_t hidden = model.hidden_size(), group = sizes.group;
  const Share heads = share(sizes.num_units, group, "KV heads");
  const Share features =
      sizes.num_experts > 0 ? Share{divided_up(sizes.num_features, tensor)} : share(sizes.num_features, 1, "features");
  LayerNumbers layer{};
  layer.query_rows = sizes.query_rows / (heads.splits_parts ? heads.replicas : 1);
  layer.key_rows = sizes.key_rows;
  layer.panel_rows = sizes.query_panels * layer.query_rows + 2 * layer.key_rows;
  layer.kv_heads = heads.units;
  layer.features = features.units;
  const auto slab = [&](std::int64_t unit_rows) { return aligned(divided_up(unit_rows, fold) * hidden); };
  layer.mixer_elements = slab(heads.units * layer.panel_rows) + slab(heads.units * layer.query_rows) + aligned(hidden) +
                         (sizes.qk_norm ? 2 * aligned(sizes.head_dim) : 0);
  layer.ffn_elements = 3 * slab(features.units) + aligned(hidden);
  if (sizes.num_experts > 0) {
    const std::int64_t shared = divided_up(sizes.shared_features, tensor);
    layer.ffn_elements = 3 * slab(shared) + aligned(hidden) + aligned(sizes.num_experts * hidden);
    layer.expert_step = sizes.expert_features * hidden;
    layer.expert_elements =
        3 * divided_up(divided_up(sizes.num_experts, std::int64_t{tensor} * expert) * layer.expert_step, fold);
  }
  layer.shared_elements = heads.splits_parts ? heads.units * 2 * layer.key_rows * hidden / fold : 0;

  const FoldForm form = plan.layout.fold_form;
  Choice mixer{form == FoldForm::Activations, form == FoldForm::Activations}, ffn = mixer;
  if (form == FoldForm::Auto) {
    const bool apart = plan.stash.kind == StashPolicy::Kind::Recompute;
    const Bytes all = activation(folded), keys_values = folded * heads.units * 2 * layer.key_rows * element;
    const Bytes mixer_returned = heads.units * (layer.panel_rows + layer.query_rows) * hidden * sum;
    const Bytes ffn_returned = (layer.expert_step > 0 ? layer.ffn_elements * fold + layer.expert_elements * fold
                                                      : 3 * features.units * hidden) *
                               sum;
    mixer = is_lopsided(heads.units, fold)
                ? Choice{false, false}
                : choose(keys_values, mixer_returned + 2 * keys_values, 2 * all, 3 * all, apart);
    ffn = is_lopsided(features.units, fold) ? Choice{false, false} : choose(0, ffn_returned, 2 * all, 3 * all, apart);
  }
  const auto mixer_pass = [&](bool brings_tokens) {
    BlockPass result = pass(fold > 1 && brings_tokens, heads.units);
    result.steps = result.folds ? std::min<std::int64_t>(std::int64_t{fold} * plan.layout.fold_buckets, heads.units)
                                : local_steps(layer.query_rows * result.units / kFewestQueryRows,
                                              std::clamp<std::int64_t>(result.units, 1, kMostSteps));
    return result;
  };
  const auto ffn_pass = [&](bool brings_tokens) {
    BlockPass result = pass(fold > 1 && brings_tokens, features.units);
    result.steps = result.folds ? fold : local_steps(result.units / kFewestFeatures, kMostSteps);
    return result;
  };
  layer.mixer_forward = mixer_pass(mixer.forward);
  layer.mixer_backward = mixer_pass(mixer.backward);
  layer.ffn_forward = ffn_pass(ffn.forward);
  layer.ffn_backward = ffn_pass(ffn.backward);
  return layer;
}

}  // namespace octavo
