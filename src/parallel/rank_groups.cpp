#include "octavo/parallel/rank_groups.h"

#include <array>

namespace octavo {

RankGroups::RankGroups(World& ranks, const Layout& whole, const Placement& placement)
    : layout(whole),
      world(ranks.split(whole.mesh, kAllAxes)),
      data(ranks.split(whole.mesh, std::array{Axis::Data})),
      tensor(ranks.split(whole.mesh, std::array{Axis::Tensor})) {
  for (const GradientSum& sum : placement.sums) {
    sums.push_back(ranks.split(neighbour_group(whole.mesh, ranks.rank(), Axis::Tensor, sum.neighbours)));
  }
}

}  // namespace octavo
