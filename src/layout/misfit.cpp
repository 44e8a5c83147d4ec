#include "octavo/layout/misfit.h"

#include <algorithm>

#include "octavo/base/text.h"

namespace octavo {
namespace {

/// Rows of every parameter section that neighbours hold alike, per unit.
std::int64_t shared_rows(const PanelLayout& panel) {
  std::int64_t rows = 0;
  for (const PanelSection& section : panel.sections) rows += section.by_part ? 0 : section.rows_per_unit;
  return rows;
}

/// Parts of a unit that are computed here.
std::int64_t parts_here(const BlockLayout& block, const BlockShare& share) {
  return share.splits_parts ? block.parts_per_unit / share.replicas : block.parts_per_unit;
}

void add_block(MisfitPrice& price, const ParamTable& table, int block, std::int64_t degree) {
  const BlockLayout& layout = table.blocks()[block];
  const BlockShare& share = price.share;
  ++price.num_blocks;
  for (int i = 0; i < static_cast<int>(layout.panels.size()); ++i) {
    const PanelLayout& panel = layout.panels[i];
    const std::int64_t whole = layout.num_units * panel.rows_per_unit() * panel.width;
    const std::int64_t extra = degree * share.computed_units() * share.rows_per_unit(panel) * panel.width - whole;
    if (layout.kind != BlockKind::Embedding) price.extra_products += extra;  // rows are looked up
    if (table.slabs()[table.panel_slab(block, i)].block != block) continue;  // stored by another block
    price.extra_elements += extra;
    if (share.splits_parts)
      price.summed_elements += layout.num_units * share.replicas * shared_rows(panel) * panel.width;
  }
  if (layout.kind != BlockKind::Attention && layout.kind != BlockKind::DeltaNet) return;
  const BlockShare whole{.units = {0, layout.num_units}};
  price.extra_heads +=
      degree * share.computed_units() * parts_here(layout, share) - layout.num_units * layout.parts_per_unit;
  price.extra_cache += degree * cached_per_token(layout, share) - cached_per_token(layout, whole);
  price.extra_state += degree * recurrent_state(layout, share) - recurrent_state(layout, whole);
}

std::string what_happens(const MisfitPrice& price, int degree) {
  const BlockShare& share = price.share;
  const std::string head =
      cat(kind_name(price.kind), ": ", price.num_units, " ", unit_name(price.kind), " over tensor=", degree);
  if (share.replicas == 1) {
    return cat(head, " are padded to ", degree * share.computed_units(), " with zeros");
  }
  return cat(head, " run at degree ", degree / share.replicas, ": ", share.replicas, " ranks hold the same, ",
             share.splits_parts ? cat("and share out the ", part_name(price.kind)) : "and compute the same");
}

}  // namespace

std::int64_t cached_per_token(const BlockLayout& block, const BlockShare& share) {
  if (block.kind != BlockKind::Attention) return 0;
  return share.computed_units() * shared_rows(block.panels[attention_panels::kQkv]);
}

std::int64_t recurrent_state(const BlockLayout& block, const BlockShare& share) {
  if (block.kind != BlockKind::DeltaNet) return 0;
  // The first section of a key head's rows is its query, the third the values of its value heads.
  const std::vector<PanelSection>& sections = block.panels[delta_net_panels::kIn].sections;
  const std::int64_t key_dim = sections[0].rows_per_unit;
  const std::int64_t value_dim = sections[2].rows_per_unit / block.parts_per_unit;
  return share.computed_units() * parts_here(block, share) * key_dim * value_dim;
}

std::vector<MisfitPrice> misfit_prices(const ParamTable& table, const Layout& layout) {
  const int degree = layout.mesh.size(Axis::Tensor);
  check_divides(table.blocks(), layout);
  std::vector<MisfitPrice> prices;
  for (int block = 0; block < static_cast<int>(table.blocks().size()); ++block) {
    const BlockLayout& info = table.blocks()[block];
    const BlockShare share = share_of(info, layout, 0);
    if (info.num_units % degree == 0) continue;
    const auto same = [&](const MisfitPrice& price) {
      return price.kind == info.kind && price.num_units == info.num_units;
    };
    auto found = std::find_if(prices.begin(), prices.end(), same);
    if (found == prices.end()) {
      prices.push_back({.kind = info.kind, .num_units = info.num_units, .num_blocks = 0, .share = share});
      found = prices.end() - 1;
    }
    add_block(*found, table, block, degree);
  }
  return prices;
}

MisfitBytes misfit_bytes(const MisfitPrice& price, const Layout& layout, ElementType compute) {
  const double ranks = layout.mesh.size(Axis::Tensor), data = layout.mesh.size(Axis::Data);
  const double optimizing = layout.zero == ZeroStage::None ? 1 : data;
  const double holding = layout.zero == ZeroStage::Weights ? data : 1;
  const double elements = static_cast<double>(price.extra_elements) / ranks;
  const auto sum_bytes = static_cast<double>(element_bytes(sum_type(compute)));
  const double replicas = price.share.replicas;
  return {.weights = elements * static_cast<double>(element_bytes(compute)) / holding,
          .gradients = elements * sum_bytes / holding,
          .optimizer = elements * sum_bytes * num_optimizer_tensors(compute) / optimizing,
          .wire = 2 * (replicas - 1) / replicas * static_cast<double>(price.summed_elements) / ranks * sum_bytes /
                  optimizing,
          .kv_cache = static_cast<double>(price.extra_cache * element_bytes(compute)) / ranks,
          .recurrent = static_cast<double>(price.extra_state * element_bytes(sum_type(compute))) / ranks,
          .matmul = 2 * static_cast<double>(price.extra_products) / ranks};
}

std::string misfit_text(const MisfitPrice& price, const Layout& layout, ElementType compute) {
  const MisfitBytes bytes = misfit_bytes(price, layout, compute);
  const auto size = [](double value) { return format_bytes(static_cast<Bytes>(value)); };
  std::string text = cat(what_happens(price, layout.mesh.size(Axis::Tensor)), "; per rank +", size(bytes.weights),
                         " weights, +", size(bytes.gradients), " gradients, +", size(bytes.optimizer), " optimizer");
  if (price.summed_elements > 0) text += cat(", +", size(bytes.wire), " sent per step");
  if (price.extra_cache > 0) text += cat(", +", size(bytes.kv_cache), " KV cache per token of context");
  if (price.extra_state > 0) text += cat(", +", size(bytes.recurrent), " recurrent state per sequence");
  if (price.extra_heads > 0) {
    text += cat(", ", price.extra_heads, " more ", part_name(price.kind), " compute in all");
  }
  if (price.extra_products > 0) {
    text += cat(", ", with_commas(static_cast<std::int64_t>(bytes.matmul)), " FLOPs wasted per token in forward");
  }
  return text;
}

}  // namespace octavo
