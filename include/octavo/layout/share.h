// What a rank of the tensor axis computes of a block: some of its units.
//
// Letters: U units of the block, T ranks of the axis, G = gcd(U, T), S = T / G.
#pragma once

#include <cstdint>
#include <span>

#include "octavo/layout/block_layout.h"
#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"

namespace octavo {

/// Where T divides U every rank has U / T units. Else, by the layout's word:
///   replicate  The block runs at degree G: S neighbours hold the same units. They share out the parts of each unit
///   (the
///              query heads of a KV head) where S divides them: then they hold what the parts share alike, and its
///              gradient is summed over them. Else they compute the same, and the first of them counts.
///   pad        Every rank computes ceil(U / T) units; those beyond the last are zeros that belong to no parameter.
struct BlockShare {
  Interval units;               // of the block; may be empty under `pad`
  std::int64_t num_padded = 0;  // units of zeros behind them
  int replicas = 1;             // S: neighbours that hold the same units
  int replica = 0;              // this rank among them
  bool splits_parts = false;    // they share out the parts of each unit

  std::int64_t computed_units() const { return units.size() + num_padded; }
  /// Whether this rank's partial sums count; if not, another rank computes the same.
  bool counts() const { return splits_parts || replica == 0; }
  /// Rows of a section that a unit has here.
  std::int64_t rows_per_unit(const PanelSection& section) const {
    return splits_parts && section.by_part ? section.rows_per_unit / replicas : section.rows_per_unit;
  }
  std::int64_t rows_per_unit(const PanelLayout& panel) const;
};

/// Throws UsageError under `refuse` for the first block whose units the tensor axis does not divide, naming block,
/// numbers, and the degrees that every block allows.
void check_divides(std::span<const BlockLayout> blocks, const Layout& layout);

/// The share of the rank at `tensor_index`. Throws as check_divides() for this block alone.
BlockShare share_of(const BlockLayout& block, const Layout& layout, int tensor_index);

}  // namespace octavo
