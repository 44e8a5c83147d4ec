#include "octavo/plan/alike.h"

#include <map>

#include "octavo/base/text.h"
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
  // Where the parts of the fold axis differ, by a row, each of its ranks meets larger ones at other times.
  bool same_parts = true;
  const std::vector<StoredSlab> first = place(table, layout, 0).slabs;
  for (int index = 1; index < layout.mesh.size(Axis::Fold); ++index) {
    const std::vector<StoredSlab> slabs = place(table, layout, layout.mesh.neighbour(0, Axis::Fold, index)).slabs;
    for (std::size_t slab = 0; slab < slabs.size(); ++slab) {
      same_parts = same_parts && slabs[slab].rows.size() == first[slab].rows.size();
    }
  }
  std::map<Signature, std::size_t> group_of;
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    Signature signature = {sequences_of(layout, batch, layout.mesh.index(rank, Axis::Data)).size(),
                           kinds[layout.mesh.index(rank, Axis::Tensor)],
                           same_parts ? 0 : layout.mesh.index(rank, Axis::Fold)};
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
