// AdamW over what this rank optimizes, with decay groups and clipping by the global norm.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/parallel/param_store.h"

namespace octavo {

struct AdamWConfig {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // of slabs that decay: matrices, not vectors
};

class Optimizer {
 public:
  /// The store must be for training and outlive this.
  Optimizer(ParamStore& store, const AdamWConfig& config);

  /// Sum of squares of the gradients of this rank's primary intervals, in float64: summed over the ranks that share
  /// tokens it is the square of the global norm. 0 on the meta device.
  double primary_sum_of_squares() const;

  /// One update of the optimized intervals; every gradient is multiplied by `gradient_scale` first. Under bfloat16
  /// the compute weights get the rounded masters. Local. `step` counts from 0.
  void update(std::int64_t step, double learning_rate, double gradient_scale);

 private:
  /// Elements of one optimized interval that belong to one slab: padding belongs to none.
  struct Segment {
    int interval;
    std::int64_t offset;  // within the interval
    std::int64_t local;   // within the rank's memory
    std::int64_t count;
    bool decays;
  };

  ParamStore& store_;
  AdamWConfig config_;
  std::vector<Segment> segments_;
};

}  // namespace octavo
