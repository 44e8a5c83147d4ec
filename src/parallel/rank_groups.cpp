#include "octavo/parallel/rank_groups.h"

#include <array>

namespace octavo {
namespace {

RankGroup replica_group(const DeviceMesh& mesh, int rank) {
  std::vector<Axis> axes(kAllAxes.begin(), kAllAxes.end());
  std::erase(axes, Axis::Data);
  RankGroup group = rank_group(mesh, rank, axes);
  group.name = "replica";
  return group;
}

}  // namespace

RankGroups::RankGroups(World& ranks, const Layout& whole, const Placement& placement)
    : layout(whole),
      reads_in_place(ranks.reads_in_place()),
      world(ranks.split(whole.mesh, kAllAxes)),
      data(ranks.split(whole.mesh, std::array{Axis::Data})),
      replica(ranks.split(replica_group(whole.mesh, ranks.rank()))),
      tensor(ranks.split(whole.mesh, std::array{Axis::Tensor})),
      fold(ranks.split(whole.mesh, std::array{Axis::Fold})),
      fold_back(ranks.split(whole.mesh, std::array{Axis::Fold})) {
  for (const GradientSum& sum : placement.sums) {
    sums.push_back(ranks.split(sum_group(sum, whole.mesh, ranks.rank())));
  }
}

}  // namespace octavo
