// In which order a rank has the positions of all ranks of the fold axis, where tokens move to the weights.
#pragma once

namespace octavo {

enum class PositionOrder {
  Sequences,  // sequence by sequence, each in its own order: for blocks whose tokens meet
  Ranks,      // rank after rank, as they come over the wire: for all others, without another copy
};

}  // namespace octavo
