// Some ranks of a world, as a communicator is made for them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "octavo/mesh/device_mesh.h"

namespace octavo {

/// One group of a cut of the world: every rank is in exactly one.
struct RankGroup {
  std::string name;        // what it is called in messages and ledgers: "data", "data+fold", "world"
  std::vector<int> ranks;  // in the world, ascending; include the rank it was made for
  std::string cut;         // how the world was cut, equal on all ranks: "data=2 tensor=4" over tensor
};

/// The ranks that differ from `rank` only along `axes`: "data+fold"; all axes give "world", none a group of one named
/// "none". Throws UsageError unless 0 <= rank < mesh.world_size().
RankGroup rank_group(const DeviceMesh& mesh, int rank, std::span<const Axis> axes);

/// The `size` neighbours along `axis` that `rank` is among: indices [k * size, (k + 1) * size) for some k, named
/// "tensor/4" for size 4, or "tensor" if they are the whole axis. Throws InternalError unless size divides the axis.
RankGroup neighbour_group(const DeviceMesh& mesh, int rank, Axis axis, int size);

}  // namespace octavo
