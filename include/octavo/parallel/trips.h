// The passes of one micro-batch through a model, in the order of their use.
#pragma once

#include <memory>
#include <vector>

#include "octavo/ops/weight_ref.h"

namespace octavo {

/// Owns the trips; each is told which comes next, so that its weights are on their way before it is used.
class Trips {
 public:
  explicit Trips(int micro_batch) : micro_batch_(micro_batch) {}

  /// The next trip. Collective over the axes that the flow's weights travel on. The flow must outlive this.
  WeightTrip& add(Flow& flow, Direction direction) {
    trips_.push_back(flow.begin(direction, micro_batch_));
    if (trips_.size() > 1) trips_[trips_.size() - 2]->then(*trips_.back());
    return *trips_.back();
  }

 private:
  int micro_batch_;
  std::vector<std::unique_ptr<WeightTrip>> trips_;
};

}  // namespace octavo
