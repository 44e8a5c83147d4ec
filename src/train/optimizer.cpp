#include "octavo/train/optimizer.h"

#include <ATen/ATen.h>

#include "octavo/ops/adamw.h"

namespace octavo {

Optimizer::Optimizer(ParamStore& store, const AdamWConfig& config) : store_(store), config_(config) {
  const Placement& placement = store.placement();
  for (int i = 0; i < static_cast<int>(placement.optimized.size()); ++i) {
    const Interval interval = placement.optimized[i];
    for (const StoredPart& part : placement.parts) {
      const Interval both = intersection(interval, {part.local_offset, part.local_offset + part.elements.size()});
      if (both.empty()) continue;
      segments_.push_back(
          {i, both.begin - interval.begin, both.begin, both.size(), store.table().slabs()[part.slab].decays});
    }
  }
}

double Optimizer::primary_sum_of_squares() const {
  double sum = 0;
  for (const Interval& interval : store_.placement().primary) {
    sum += ops::sum_of_squares(store_.gradients().narrow(0, interval.begin, interval.size()));
  }
  return sum;
}

void Optimizer::update(std::int64_t step, double learning_rate, double gradient_scale) {
  ops::AdamWOptions options{.learning_rate = learning_rate,
                            .beta1 = config_.beta1,
                            .beta2 = config_.beta2,
                            .eps = config_.eps,
                            .gradient_scale = gradient_scale,
                            .step = step + 1};
  for (const Segment& segment : segments_) {
    const auto state = [&](const at::Tensor& interval) { return interval.narrow(0, segment.offset, segment.count); };
    options.weight_decay = segment.decays ? config_.weight_decay : 0.0;
    at::Tensor w = state(store_.masters(segment.interval));
    at::Tensor m = state(store_.first_moments(segment.interval));
    at::Tensor v = state(store_.second_moments(segment.interval));
    at::Tensor compute;
    if (store_.compute_type() == ElementType::BFloat16)
      compute = store_.weights().narrow(0, segment.local, segment.count);
    ops::adamw_(w, m, v, store_.gradients().narrow(0, segment.local, segment.count), compute, options);
  }
}

}  // namespace octavo
