#include "octavo/layout/fold_choice.h"

#include <algorithm>
#include <utility>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/layout/fold_units.h"

namespace octavo {
namespace {

std::int64_t hidden_size(const ParamTable& table) {
  return table.slabs()[table.panel_slab(0, vocabulary_panels::kRows)].width;
}

/// W.
std::int64_t matrix_elements(const BlockLayout& block, const BlockShare& share) {
  std::int64_t elements = 0;
  for (const PanelLayout& panel : block.panels) {
    elements += share.computed_units() * share.rows_per_unit(panel) * panel.width;
  }
  return elements;
}

/// K.
std::int64_t key_value_elements(const BlockLayout& block, const BlockShare& share, std::int64_t positions) {
  if (block.kind != BlockKind::Attention) return 0;
  const std::vector<PanelSection>& qkv = block.panels[attention_panels::kQkv].sections;
  return positions * share.computed_units() * (share.rows_per_unit(qkv[1]) + share.rows_per_unit(qkv[2]));
}

Bytes sum_over(const FoldBytes::Pass& pass, FoldForm form) {
  return form == FoldForm::Weights ? pass.weights : pass.activations;
}

FoldForm cheaper(Bytes weights, Bytes activations) {
  return activations < weights ? FoldForm::Activations : FoldForm::Weights;
}

BlockForms cheaper(const FoldBytes& bytes, bool apart) {
  if (apart) {
    return {cheaper(bytes.forward.weights, bytes.forward.activations),
            cheaper(bytes.backward.weights, bytes.backward.activations)};
  }
  const FoldForm form =
      cheaper(bytes.forward.weights + bytes.backward.weights, bytes.forward.activations + bytes.backward.activations);
  return {form, form};
}

std::string form_text(const BlockForms& forms) {
  const auto name = [](FoldForm form) { return form == FoldForm::Weights ? "weights" : "activations"; };
  if (forms.forward == forms.backward) return name(forms.forward);
  return cat(name(forms.forward), " forward and ", name(forms.backward), " backward");
}

/// Whether activations would make the busiest rank compute notably longer than weights do, which spread any units
/// evenly: then no saving in bytes is worth it.
bool is_lopsided(const BlockLayout& block, const BlockShare& share, int degree) {
  constexpr double kNotably = 1.05;
  return static_cast<double>(most_fold_units(block, share, degree) * degree) >
         kNotably * static_cast<double>(share.computed_units());
}

}  // namespace

FoldBytes fold_bytes(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares, int block,
                     const FoldWork& work) {
  const int degree = layout.mesh.size(Axis::Fold);
  const BlockLayout& info = table.blocks()[block];
  const BlockShare& share = shares[block];
  const Bytes e = element_bytes(work.compute), g = element_bytes(sum_type(work.compute));
  const std::int64_t elements = matrix_elements(info, share), foreign = foreign_elements(info, share, degree);
  const Bytes read = work.reads_in_place ? 0 : elements * e, returned = elements * g;
  const Bytes keys_values = key_value_elements(info, share, work.positions) * e;
  const Bytes activation = work.positions * hidden_size(table) * e;
  const Bytes loss_rows = Bytes{degree} * 2 * work.positions * g;
  const bool trains = work.passes != FoldPasses::Forward;
  FoldBytes bytes;
  switch (info.kind) {
    case BlockKind::Embedding:
      bytes = {{read, activation}, {returned, activation}};
      break;
    case BlockKind::Attention:
    case BlockKind::DeltaNet:
    case BlockKind::GatedMlp:
    case BlockKind::Moe:
    case BlockKind::SharedExpert:
      bytes = {{read + keys_values, 2 * activation}, {read + returned + 2 * keys_values, 3 * activation}};
      break;
    case BlockKind::Head: {
      const Bytes again = num_fold_steps(share, degree) > 1 ? read : 0;
      bytes.forward = {read + (trains ? again + returned : 0), (trains ? 2 : 1) * activation + loss_rows};
      break;
    }
  }
  if (!trains) bytes.backward = {};
  const Bytes others = degree - 1;
  for (FoldBytes::Pass* pass : {&bytes.forward, &bytes.backward}) {
    pass->weights *= others;
    pass->activations *= others;
  }
  bytes.forward.activations += foreign * e;
  if (trains) bytes.backward.activations += foreign * (e + g);
  return bytes;
}

std::vector<BlockForms> fold_forms(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                                   const FoldWork& work) {
  std::vector<BlockForms> forms(table.blocks().size(), {FoldForm::Weights, FoldForm::Weights});
  if (layout.mesh.size(Axis::Fold) == 1) return forms;
  for (int block = 0; block < static_cast<int>(forms.size()); ++block) {
    const bool embeds = table.blocks()[block].kind == BlockKind::Embedding;
    if (!embeds && layout.fold_form != FoldForm::Auto) {
      forms[block] = {layout.fold_form, layout.fold_form};
      continue;
    }
    if (is_lopsided(table.blocks()[block], shares[block], layout.mesh.size(Axis::Fold))) continue;
    // Backward of the embedding needs nothing that forward kept.
    const FoldBytes bytes = fold_bytes(table, layout, shares, block, work);
    forms[block] = cheaper(bytes, embeds || work.passes == FoldPasses::Apart);
    if (table.blocks()[block].kind == BlockKind::Head) forms[block].backward = forms[block].forward;
  }
  return forms;
}

std::string fold_forms_text(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                            const FoldWork& work) {
  const std::vector<BlockForms> forms = fold_forms(table, layout, shares, work);
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds_of;  // by form, in the order of the blocks
  Bytes moved = 0, weights = 0, activations = 0;
  for (int block = 0; block < static_cast<int>(forms.size()); ++block) {
    const FoldBytes bytes = fold_bytes(table, layout, shares, block, work);
    moved += sum_over(bytes.forward, forms[block].forward) + sum_over(bytes.backward, forms[block].backward);
    weights += bytes.forward.weights + bytes.backward.weights;
    activations += bytes.forward.activations + bytes.backward.activations;
    const std::string form = form_text(forms[block]), kind(kind_name(table.blocks()[block].kind));
    auto found = std::find_if(kinds_of.begin(), kinds_of.end(), [&](const auto& each) { return each.first == form; });
    if (found == kinds_of.end()) found = kinds_of.insert(kinds_of.end(), {form, {}});
    std::vector<std::string>& kinds = found->second;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  std::vector<std::string> parts;
  for (const auto& [form, kinds] : kinds_of) parts.push_back(cat(form, " for ", join(kinds, ", ")));
  const auto mean = [&](Bytes total) { return format_bytes(total / layout.mesh.size(Axis::Fold)); };
  return cat(join(parts, "; "), ": ", mean(moved), " sent per rank (weights alone ", mean(weights),
             ", activations alone ", mean(activations), work.reads_in_place ? "; weights are read in place)" : ")");
}

std::string fold_thresholds_text(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                                 ElementType compute) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  std::vector<BlockKind> seen;
  std::vector<std::string> parts;
  for (int block = 0; block < static_cast<int>(table.blocks().size()); ++block) {
    const BlockKind kind = table.blocks()[block].kind;
    if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
    seen.push_back(kind);
    const auto has_weights = [&](std::int64_t positions) {
      const FoldWork work{positions, compute, FoldPasses::Together, /*reads_in_place=*/false};
      return fold_forms(table, layout, shares, work)[block].forward == FoldForm::Weights;
    };
    // What the weights form moves grows more slowly with the positions, or it never pays.
    std::int64_t activations = 0, weights = kMost;
    while (weights - activations > 1) {
      const std::int64_t middle = (activations + weights) / 2;
      (has_weights(middle) ? weights : activations) = middle;
    }
    parts.push_back(has_weights(weights) ? cat(kind_name(kind), weights == 1 ? " always" : cat(" from ", weights))
                                         : cat(kind_name(kind), " never"));
  }
  return cat("weights for ", join(parts, ", "), " (positions of a micro-batch); activations else");
}

}  // namespace octavo
