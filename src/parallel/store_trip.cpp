#include "parallel/store_trip.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "octavo/ops/accumulate.h"
#include "octavo/ops/embedding.h"
#include "octavo/ops/matmul.h"

namespace octavo {

UnitRange StoreTrip::units(int step) const {
  const Interval part = part_of(step), all = share().units;
  const std::int64_t begin = std::min(all.end, all.begin + part.begin);
  const std::int64_t end = std::min(all.end, all.begin + part.end);
  return {begin, end, part.size() - (end - begin)};
}

at::Tensor StoreTrip::common(int common) {
  return store_.weight(common_slab(common)).select(0, 0);
}

void StoreTrip::add_product(int step, int panel, const at::Tensor& a, const at::Tensor& b) {
  GradientTerms target = gradient(step, panel);
  const bool same_type = target.sum.scalar_type() == a.scalar_type();
  if (same_type && target.is_empty) {
    ops::mm_out(target.sum, a.t(), b);
  } else if (same_type) {
    ops::addmm_(target.sum, a.t(), b);
  } else if (target.is_empty) {
    target.sum.copy_(ops::mm(a.t(), b));
  } else {  // libtorch has no product of bfloat16 factors that adds into float32
    ops::accumulate_(target.sum, ops::mm(a.t(), b));
  }
}

at::Tensor StoreTrip::look_up(int step, int panel_index, const at::Tensor& ids) {
  return ops::embedding_forward(ids, panel(step, panel_index), units(step).begin, layout().num_units);
}

void StoreTrip::add_rows(int step, int panel, const at::Tensor& ids, const at::Tensor& dx) {
  const GradientTerms target = gradient(step, panel);
  if (target.is_empty) target.sum.zero_();
  ops::embedding_backward_(target.sum, ids, dx, units(step).begin);
}

void StoreTrip::add_common(int common, const at::Tensor& gradient) {
  if (layout().commons[common].in_units && !counts()) return;
  ops::accumulate_(store_.gradient(common_slab(common)).select(0, 0), gradient);
}

Interval StoreTrip::rows_of(int step, int panel) const {
  const Interval part = part_of(step);
  const std::int64_t rows = share().rows_per_unit(layout().panels[panel]);
  return {part.begin * rows, part.end * rows};
}

}  // namespace octavo
