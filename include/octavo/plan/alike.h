// Which ranks do the same: a plan or a dry run needs one rank of each kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"

namespace octavo {

/// The ranks of the layout in groups, each ascending, by their first rank. Ranks of a group take as many sequences of a
/// batch of `batch`, compute as many units of every block in the same way, and sum up as many partial gradients: their
/// steps have the same shapes, so the same memory, FLOPs and ledger. Throws UsageError for a layout that refuses the
/// model.
std::vector<std::vector<int>> alike_ranks(const ParamTable& table, const Layout& layout, std::int64_t batch);

/// "0-3, 8, 10-11", at most `most` ranges, then "...": ascending ranks for people.
std::string rank_ranges(const std::vector<int>& ranks, int most = 8);

}  // namespace octavo
