#include "cli/fold_report.h"

#include <algorithm>
#include <cmath>

#include "octavo/base/text.h"
#include "octavo/layout/fold_units.h"
#include "octavo/layout/placement.h"
#include "octavo/layout/token_spans.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

std::string_view form_name(FoldForm form) {
  return form == FoldForm::Weights ? "weights" : "activations";
}

/// Of the kinds of block that have the activations form at all.
template <class Runs>
void add_excesses(std::vector<std::string>& notes, const ParamTable& table, const Layout& layout, ElementType compute,
                  const Runs& runs) {
  for (const FoldExcess& excess : fold_excesses(table, layout)) {
    const bool is_seen = std::round(100 * excess.factor(layout.mesh.size(Axis::Fold))) > 100;
    if (is_seen && runs(excess.kind)) notes.push_back(fold_excess_text(excess, layout, compute));
  }
}

}  // namespace

std::int64_t shown_positions(const Layout& layout, std::int64_t batch, std::int64_t sequence_length,
                             std::int64_t micro_batch) {
  const TokenCut cut{layout.fold_order, layout.mesh.size(Axis::Fold)};
  return std::min(micro_batch, sequences_of(layout, batch, 0).size()) * cut.padded_length(sequence_length);
}

std::vector<std::string> fold_notes(const ParamTable& table, const Layout& layout, const FoldWork& work,
                                    std::int64_t sequence_length) {
  std::vector<std::string> notes;
  const int degree = layout.mesh.size(Axis::Fold);
  if (degree == 1) return notes;
  const std::int64_t filled = TokenCut{layout.fold_order, degree}.padded_length(sequence_length);
  if (filled > sequence_length) {
    notes.push_back(
        cat("sequences of ", sequence_length, " tokens are filled up to ", filled, " positions, which fold=", degree,
            " divides: ",
            fixed(100.0 * static_cast<double>(filled - sequence_length) / static_cast<double>(sequence_length), 1),
            "% more to compute"));
  }
  const std::vector<BlockShare> shares = place(table, layout, 0).shares;
  const std::string word = layout.fold_form == FoldForm::Auto ? "auto" : std::string(form_name(layout.fold_form));
  notes.push_back(cat("fold=", degree, ":", word, " at ", work.positions,
                      " positions: ", fold_forms_text(table, layout, shares, work)));
  const std::vector<BlockForms> forms = fold_forms(table, layout, shares, work);
  add_excesses(notes, table, layout, work.compute, [&](BlockKind kind) {
    for (std::size_t block = 0; block < forms.size(); ++block) {
      if (table.blocks()[block].kind != kind) continue;
      if (forms[block] != BlockForms{FoldForm::Weights, FoldForm::Weights}) return true;
    }
    return false;
  });
  return notes;
}

std::vector<std::string> fold_layout_notes(const ParamTable& table, const Layout& layout, ElementType compute) {
  std::vector<std::string> notes;
  const int degree = layout.mesh.size(Axis::Fold);
  if (degree == 1) return notes;
  if (layout.fold_form == FoldForm::Auto) {
    notes.push_back(
        cat("fold=", degree, ":auto: ", fold_thresholds_text(table, layout, place(table, layout, 0).shares, compute)));
  }
  if (layout.fold_form != FoldForm::Activations) return notes;
  add_excesses(notes, table, layout, compute, [](BlockKind) { return true; });
  return notes;
}

json fold_json(const ParamTable& table, const Layout& layout, const FoldWork& work, std::int64_t sequence_length) {
  const int degree = layout.mesh.size(Axis::Fold);
  if (degree == 1) return nullptr;
  const std::vector<BlockShare> shares = place(table, layout, 0).shares;
  const std::vector<BlockForms> forms = fold_forms(table, layout, shares, work);
  const auto pass_json = [&](const FoldBytes::Pass& pass) {
    return json{{"weights", pass.weights / degree}, {"activations", pass.activations / degree}};
  };
  json blocks = json::array();
  for (std::size_t block = 0; block < forms.size(); ++block) {
    const FoldBytes bytes = fold_bytes(table, layout, shares, static_cast<int>(block), work);
    json entry = {{"kind", kind_name(table.blocks()[block].kind)},
                  {"forward", form_name(forms[block].forward)},
                  {"backward", form_name(forms[block].backward)},
                  {"sent_bytes", {{"forward", pass_json(bytes.forward)}, {"backward", pass_json(bytes.backward)}}}};
    if (std::find(blocks.begin(), blocks.end(), entry) == blocks.end()) blocks.push_back(std::move(entry));
  }
  return {
      {"positions", work.positions}, {"blocks", blocks}, {"notes", fold_notes(table, layout, work, sequence_length)}};
}

}  // namespace octavo::cli
