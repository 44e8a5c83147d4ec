#include "octavo/plan/audit_policies.h"

#include <algorithm>

#include "octavo/layout/fold_choice.h"
#include "octavo/layout/token_spans.h"
#include "octavo/plan/audit_slices.h"

namespace octavo {

std::vector<MisfitPolicy> misfit_policies(const ParamTable& table, const Layout& layout, ElementType compute) {
  std::vector<MisfitPolicy> policies;
  for (const Misfit misfit : {Misfit::Replicate, Misfit::Pad}) {
    Layout treated = layout;
    treated.misfit = misfit;
    MisfitPolicy policy{.misfit = misfit, .prices = misfit_prices(table, treated), .bytes = {}};
    for (const MisfitPrice& price : policy.prices) {
      policy.bytes.push_back(misfit_bytes(price, treated, compute));
      policy.extra_elements += price.extra_elements;
    }
    if (!policy.prices.empty()) policies.push_back(std::move(policy));
  }
  return policies;
}

GatherPrice gather_price(const ModelSpec& model, std::int64_t degree, std::int64_t tokens, Bytes element_bytes) {
  GatherPrice price;
  for (const LayerSpec& layer : model.layers) {
    const auto* attention = std::get_if<AttentionSpec>(&layer.mixer);
    if (attention == nullptr) continue;
    const std::int64_t heads = (attention->output_gate ? 2 : 1) * attention->num_heads + 2 * attention->num_kv_heads;
    price.full_elements = tokens * heads * attention->head_dim;
    price.received_elements = price.full_elements * (degree - 1) / degree;
    price.forward += price.received_elements * element_bytes;
  }
  price.backward = price.forward;
  return price;
}

FoldInstead fold_instead(const ModelSpec& model, const ParamTable& table, const Layout& layout, std::int64_t tokens,
                         ElementType compute) {
  FoldInstead result{.layout = layout, .elements = 0, .sent = 0};
  std::vector<AxisSize> axes;
  for (const AxisSize& axis : layout.mesh.axes()) {
    if (axis.axis == Axis::Fold) continue;
    axes.push_back(axis.axis == Axis::Tensor ? AxisSize{Axis::Fold, axis.size * layout.mesh.size(Axis::Fold)} : axis);
  }
  result.layout.mesh = DeviceMesh(axes);
  result.layout.misfit = Misfit::Refuse;
  const int degree = result.layout.mesh.size(Axis::Fold);
  result.elements = stored_elements(table, result.layout, 0, model);
  const Placement placement = place(table, result.layout, 0);
  const TokenCut cut{layout.fold_order, degree};
  const FoldWork work{cut.padded_length(tokens), compute, FoldPasses::Together, /*reads_in_place=*/false};
  const std::vector<BlockForms> forms = fold_forms(table, result.layout, placement.shares, work);
  const auto of = [](const FoldBytes::Pass& pass, FoldForm form) {
    return form == FoldForm::Weights ? pass.weights : pass.activations;
  };
  const Interval blocks = blocks_of_stage(model, table, layout, 0);
  for (auto block = static_cast<int>(blocks.begin); block < blocks.end; ++block) {
    const FoldBytes bytes = fold_bytes(table, result.layout, placement.shares, block, work);
    result.sent += of(bytes.forward, forms[block].forward) + of(bytes.backward, forms[block].backward);
  }
  result.sent /= degree;
  return result;
}

}  // namespace octavo
