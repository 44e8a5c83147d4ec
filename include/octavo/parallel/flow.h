// Where the weights of a block come from, pass after pass.
#pragma once

#include <memory>

#include "octavo/blocks/block.h"
#include "octavo/ops/weight_ref.h"

namespace octavo {

enum class Direction { Forward, Backward };

/// One pass over the weights of a block, in steps that together cover the units computed here. Owns what it has in
/// flight.
class Trip : public WeightTrip {
 public:
  virtual int num_steps() const = 0;
};

class Flow {
 public:
  virtual ~Flow() = default;
  /// Collective over the axes that the weights travel on. The flow must outlive the trip.
  virtual std::unique_ptr<Trip> begin(Direction direction, int micro_batch) = 0;
};

}  // namespace octavo
