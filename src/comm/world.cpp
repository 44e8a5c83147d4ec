#include "octavo/comm/world.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::unique_ptr<Communicator> World::split(const DeviceMesh& mesh, std::span<const Axis> axes) {
  if (mesh.world_size() != size()) {
    throw UsageError(cat("[comm] rank ", rank(), ": mesh \"", mesh.to_string(), "\" has ", mesh.world_size(),
                         " ranks but the world has ", size(), "; they must be equal."));
  }
  return split(rank_group(mesh, rank(), axes));
}

}  // namespace octavo
