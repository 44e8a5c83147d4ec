// Who computes which units where the fold axis moves tokens to the weights (its activations form), and what it costs
// that they do not divide. Weights are stored as in its weights form (layout/fold_steps.h): each panel's rows cut
// anywhere.
//
// Letters: D ranks of the axis, U units that a rank of the tensor axis computes, whose rows the D ranks store together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/layout/element_type.h"
#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/layout/share.h"

namespace octavo {

/// The units of each of the D ranks, of the U: a unit is computed where most of its elements lie, over all panels; of
/// two such ranks by the lower. So where D divides U, and for units of a row in each panel (features, vocabulary rows),
/// by the rank that stores it whole; where there are fewer units than ranks, some ranks have none.
std::vector<Interval> fold_units(const BlockLayout& block, const BlockShare& share, int degree);

/// Of the rank that has most of them.
std::int64_t most_fold_units(const BlockLayout& block, const BlockShare& share, int degree);

/// Rows of a panel that `user` computes with and `owner` stores, of the panel's rows of all U units.
struct ForeignRows {
  int panel, user, owner;
  Interval rows;
};
/// All of a block, by panel, user and owner ascending. No row has two users.
std::vector<ForeignRows> foreign_rows(const BlockLayout& block, const BlockShare& share, int degree);

/// Elements of all of them.
std::int64_t foreign_elements(const BlockLayout& block, const BlockShare& share, int degree);

/// Blocks of one kind whose units D does not divide.
struct FoldExcess {
  BlockKind kind;
  int num_blocks;
  std::int64_t num_units;         // U
  std::int64_t most_units;        // of one rank
  int idle_ranks;                 // of the D, without a unit
  std::int64_t foreign_elements;  // of each block, over the D ranks

  /// How much longer the busiest rank computes than if all had the same: its units over U / D.
  double factor(int degree) const { return static_cast<double>(most_units * degree) / static_cast<double>(num_units); }
};

/// One entry per kind of block that the fold axis does not divide; none without one. Throws UsageError for a layout
/// that refuses the model.
std::vector<FoldExcess> fold_excesses(const ParamTable& table, const Layout& layout);

/// One line for people: what happens, and what it costs.
std::string fold_excess_text(const FoldExcess& excess, const Layout& layout, ElementType compute);

}  // namespace octavo
