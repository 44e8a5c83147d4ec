// How the fold axis cuts the matrices of a block, and in which steps it goes through their units (parallel/fold/).
//
// Letters: D ranks of the axis, U units that a rank of the tensor axis computes, whose rows the D ranks store together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/share.h"

namespace octavo {

/// The rows of a panel that index `index` stores, of the `unit_rows` of all U units: cut anywhere, as evenly as rows
/// are.
inline Interval fold_part(std::int64_t unit_rows, int degree, int index) {
  return even_part(unit_rows, degree, index);
}

/// Parts that a pass over a block is taken in: one per rank; of the KV heads of each rank `fold_buckets`.
inline int fold_parts(const Layout& layout, BlockKind kind) {
  return layout.mesh.size(Axis::Fold) * (kind == BlockKind::Attention ? layout.fold_buckets : 1);
}

/// Steps of a pass: one per part, or one per unit where there are fewer units than parts.
inline int num_fold_steps(const BlockShare& share, int parts) {
  return static_cast<int>(std::min<std::int64_t>(parts, share.computed_units()));
}

/// The units of a step, of the U. Where D parts divide U they are those whose rows one rank stores.
inline Interval units_of_fold_step(const BlockShare& share, int parts, int step) {
  return even_part(share.computed_units(), num_fold_steps(share, parts), step);
}

/// Whether the shards of a block go round, each rank using another one at a time: step s of a pass on rank p has what
/// rank (p + s) mod D stores, all of it. So where nobody's activations are needed and every rank stores units;
/// otherwise all ranks use the same units in a step, and those come to all at once.
inline bool goes_round(BlockKind kind, const BlockShare& share, int degree) {
  return kind != BlockKind::Attention && share.computed_units() >= degree;
}

/// Calls body(owner, rows) for each rank that stores rows of a step of `panel`; rows of the panel's `unit_rows`.
template <class Body>
void for_each_fold_owner(const BlockShare& share, const PanelLayout& panel, std::int64_t unit_rows, int degree,
                         int parts, int step, const Body& body) {
  const Interval units = units_of_fold_step(share, parts, step);
  const std::int64_t rows = share.rows_per_unit(panel);
  for (int owner = 0; owner < degree; ++owner) {
    const Interval own = intersection({units.begin * rows, units.end * rows}, fold_part(unit_rows, degree, owner));
    if (!own.empty()) body(owner, own);
  }
}

}  // namespace octavo
