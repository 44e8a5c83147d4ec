// The groups of ranks that one rank works in: made once per run.
#pragma once

#include <memory>
#include <vector>

#include "octavo/comm/communicator.h"
#include "octavo/comm/world.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/placement.h"

namespace octavo {

struct RankGroups {
  /// Collective over the world: every rank makes its groups for the same layout. The world must outlive this. Throws
  /// UsageError if the layout's ranks are not the world's.
  RankGroups(World& ranks, const Layout& layout, const Placement& placement);

  Layout layout;
  bool reads_in_place;                              // ranks read each other's memory where it lies
  std::unique_ptr<Communicator> world;              // everyone
  std::unique_ptr<Communicator> data;               // other sequences, the same weights
  std::unique_ptr<Communicator> replica;            // the same sequences: together one copy of the model
  std::unique_ptr<Communicator> tensor;             // the same sequences, other units
  std::unique_ptr<Communicator> fold;               // other tokens of the same sequences, other parts of the same units
  std::unique_ptr<Communicator> fold_back;          // the same: for gradients that go round, in an order of their own
  std::vector<std::unique_ptr<Communicator>> sums;  // of Placement::sums, in their order
};

}  // namespace octavo
