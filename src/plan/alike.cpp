#include "octavo/plan/alike.h"

#include <algorithm>
#include <map>

#include "octavo/base/text.h"
#include "octavo/layout/fold_units.h"
#include "octavo/layout/placement.h"

namespace octavo {
namespace {

using Signature = std::vector<std::int64_t>;

/// What a rank computes of every block.
Signature shares_at(const ParamTable& table, const Layout& layout, int tensor_index) {
  Signature signature;
  for (const BlockLayout& block : table.blocks()) {
    const BlockShare share = share_of(block, layout, tensor_index);
    for (const std::int64_t value : {share.units.size(), share.num_padded, std::int64_t{share.counts()}}) {
      signature.push_back(value);
    }
  }
  return signature;
}

/// What each index of the fold axis stores, whose parts may differ by a row; and where tokens come to the weights, the
/// units of each block there, and what it sends and receives of others.
std::vector<Signature> parts_of_fold(const ParamTable& table, const Layout& layout) {
  const int degree = layout.mesh.size(Axis::Fold);
  std::vector<Signature> parts(degree);
  for (int index = 0; index < degree; ++index) {
    const Placement placement = place(table, layout, layout.mesh.neighbour(0, Axis::Fold, index));
    for (const StoredSlab& slab : placement.slabs) parts[index].push_back(slab.rows.size());
  }
  // Of parts that differ each rank meets the larger ones at other times.
  if (std::any_of(parts.begin(), parts.end(), [&](const Signature& part) { return part != parts.front(); })) {
    for (int index = 0; index < degree; ++index) parts[index].push_back(index);
  }
  if (degree == 1 || layout.fold_form == FoldForm::Weights) return parts;
  for (const BlockLayout& block : table.blocks()) {
    const BlockShare share = share_of(block, layout, 0);
    const std::vector<Interval> units = fold_units(block, share, degree);
    for (int index = 0; index < degree; ++index) parts[index].push_back(units[index].size());
    for (const ForeignRows& rows : foreign_rows(block, share, degree)) {
      parts[rows.user].insert(parts[rows.user].end(), {1, rows.panel, rows.rows.size()});
      parts[rows.owner].insert(parts[rows.owner].end(), {2, rows.panel, rows.rows.size()});
    }
  }
  return parts;
}

}  // namespace

std::vector<std::vector<int>> alike_ranks(const ParamTable& table, const Layout& layout, std::int64_t batch) {
  std::map<Signature, int> kind_of_share;
  std::vector<int> kinds;  // by index of the tensor axis
  for (int index = 0; index < layout.mesh.size(Axis::Tensor); ++index) {
    const auto next = static_cast<int>(kind_of_share.size());
    kinds.push_back(kind_of_share.try_emplace(shares_at(table, layout, index), next).first->second);
  }
  // Without shards every rank has all of its partial gradients.
  const bool sums_differ = layout.zero == ZeroStage::Optimizer && !place(table, layout, 0).sums.empty();
  const std::vector<Signature> fold_parts = parts_of_fold(table, layout);
  std::map<Signature, std::size_t> group_of;
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    Signature signature = {sequences_of(layout, batch, layout.mesh.index(rank, Axis::Data)).size(),
                           kinds[layout.mesh.index(rank, Axis::Tensor)]};
    const Signature& part = fold_parts[layout.mesh.index(rank, Axis::Fold)];
    signature.insert(signature.end(), part.begin(), part.end());
    if (sums_differ) {
      for (const GradientSum& sum : place(table, layout, rank).sums) signature.push_back(sum.elements());
    }
    const auto [group, is_new] = group_of.try_emplace(std::move(signature), groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(rank);
  }
  return groups;
}

std::string rank_ranges(const std::vector<int>& ranks, int most) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (static_cast<int>(ranges.size()) == most) {
      ranges.emplace_back("...");
      break;
    }
    ranges.push_back(end - begin == 1 ? cat(ranks[begin]) : cat(ranks[begin], "-", ranks[end - 1]));
    begin = end;
  }
  return join(ranges, ", ");
}

}  // namespace octavo
