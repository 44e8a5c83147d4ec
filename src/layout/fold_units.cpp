#include "octavo/layout/fold_units.h"

#include <algorithm>

#include "octavo/base/text.h"
#include "octavo/layout/fold_steps.h"

namespace octavo {
namespace {

/// Whether the even cut of every panel's rows is one of units.
bool cut_at_units(const BlockLayout& block, const BlockShare& share, int degree) {
  return share.computed_units() % degree == 0 ||
         std::all_of(block.panels.begin(), block.panels.end(),
                     [&](const PanelLayout& panel) { return share.rows_per_unit(panel) == 1; });
}

Interval panel_part(const PanelLayout& panel, const BlockShare& share, int degree, int index) {
  return fold_part(share.computed_units() * share.rows_per_unit(panel), degree, index);
}

/// The rank that stores most elements of a unit, the lowest of these.
int home_of(std::int64_t unit, const BlockLayout& block, const BlockShare& share, int degree) {
  int home = 0;
  std::int64_t most = 0;
  for (int index = 0; index < degree; ++index) {
    std::int64_t elements = 0;
    for (const PanelLayout& panel : block.panels) {
      const std::int64_t rows = share.rows_per_unit(panel);
      const Interval part = panel_part(panel, share, degree, index);
      elements += intersection(part, {unit * rows, (unit + 1) * rows}).size() * panel.width;
    }
    if (elements > most) {
      home = index;
      most = elements;
    }
  }
  return home;
}

FoldExcess excess_of(const BlockLayout& block, const BlockShare& share, int degree) {
  FoldExcess excess{.kind = block.kind,
                    .num_blocks = 0,
                    .num_units = share.computed_units(),
                    .most_units = most_fold_units(block, share, degree),
                    .idle_ranks = 0,
                    .foreign_elements = foreign_elements(block, share, degree)};
  for (const Interval& units : fold_units(block, share, degree)) {
    if (units.empty()) ++excess.idle_ranks;
  }
  return excess;
}

}  // namespace

std::vector<Interval> fold_units(const BlockLayout& block, const BlockShare& share, int degree) {
  std::vector<Interval> units(degree);
  if (cut_at_units(block, share, degree)) {
    for (int index = 0; index < degree; ++index) units[index] = even_part(share.computed_units(), degree, index);
    return units;
  }
  int home = 0;
  for (std::int64_t unit = 0; unit < share.computed_units(); ++unit) {
    // Panels are cut at rounded rows, which must not put a unit before the one that precedes it.
    const int next = std::max(home, home_of(unit, block, share, degree));
    for (; home < next; ++home) units[home + 1] = {unit, unit};
    ++units[home].end;
  }
  for (; home + 1 < degree; ++home) units[home + 1] = {share.computed_units(), share.computed_units()};
  return units;
}

std::int64_t most_fold_units(const BlockLayout& block, const BlockShare& share, int degree) {
  std::int64_t most = 0;
  for (const Interval& units : fold_units(block, share, degree)) most = std::max(most, units.size());
  return most;
}

std::vector<ForeignRows> foreign_rows(const BlockLayout& block, const BlockShare& share, int degree) {
  std::vector<ForeignRows> foreign;
  if (cut_at_units(block, share, degree)) return foreign;
  const std::vector<Interval> units = fold_units(block, share, degree);
  for (int panel = 0; panel < static_cast<int>(block.panels.size()); ++panel) {
    const std::int64_t rows = share.rows_per_unit(block.panels[panel]);
    for (int user = 0; user < degree; ++user) {
      const Interval used{units[user].begin * rows, units[user].end * rows};
      for (int owner = 0; owner < degree; ++owner) {
        const Interval both = intersection(used, panel_part(block.panels[panel], share, degree, owner));
        if (owner != user && !both.empty()) foreign.push_back({panel, user, owner, both});
      }
    }
  }
  return foreign;
}

std::int64_t foreign_elements(const BlockLayout& block, const BlockShare& share, int degree) {
  std::int64_t elements = 0;
  for (const ForeignRows& each : foreign_rows(block, share, degree)) {
    elements += each.rows.size() * block.panels[each.panel].width;
  }
  return elements;
}

std::vector<FoldExcess> fold_excesses(const ParamTable& table, const Layout& layout) {
  const int degree = layout.mesh.size(Axis::Fold);
  check_divides(table.blocks(), layout);
  std::vector<FoldExcess> excesses;
  for (const BlockLayout& block : table.blocks()) {
    const BlockShare share = share_of(block, layout, 0);
    if (share.computed_units() % degree == 0) continue;
    const auto same = [&](const FoldExcess& excess) {
      return excess.kind == block.kind && excess.num_units == share.computed_units();
    };
    auto found = std::find_if(excesses.begin(), excesses.end(), same);
    if (found == excesses.end()) found = excesses.insert(excesses.end(), excess_of(block, share, degree));
    ++found->num_blocks;
  }
  return excesses;
}

std::string fold_excess_text(const FoldExcess& excess, const Layout& layout, ElementType compute) {
  const int degree = layout.mesh.size(Axis::Fold);
  std::string text = cat(kind_name(excess.kind), ": ", excess.num_units, " ", unit_name(excess.kind),
                         " over fold=", degree, " by activations: ", excess.most_units, " on the busiest rank, ",
                         fixed(excess.factor(degree), 2), " times an even share");
  if (excess.idle_ranks > 0) {
    text += cat("; ", excess.idle_ranks, excess.idle_ranks == 1 ? " rank has none" : " ranks have none");
  }
  if (excess.foreign_elements > 0) {
    text += cat("; ", format_bytes(excess.foreign_elements * element_bytes(compute)),
                " of weights per block and pass come from other ranks");
  }
  return text;
}

}  // namespace octavo
