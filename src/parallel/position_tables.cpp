#include "parallel/position_tables.h"

#include <ATen/ATen.h>

#include <numeric>

#include "octavo/memory/account.h"

namespace octavo {

const ops::RopeTable& PositionTables::rope(const RopeSpec& spec, std::int64_t head_dim) {
  // Layers share their rotary embedding in all models so far, so one table is at hand at a time.
  if (!table_ || table_->spec != spec || table_->head_dim != head_dim) {
    const CategoryScope scope(MemoryCategory::Activations);
    table_ = {spec, head_dim, ops::rope_table(spec, head_dim, positions(), options_.dtype().toScalarType())};
  }
  return table_->table;
}

at::Tensor PositionTables::positions() const {
  at::Tensor positions = at::empty({num_rows_}, options_.dtype(at::kLong));
  if (positions.is_meta()) return positions;
  for (const PositionRun& run : runs_) {
    std::int64_t* first = positions.data_ptr<std::int64_t>() + run.row;
    std::iota(first, first + run.size, run.begin);
  }
  return positions;
}

}  // namespace octavo
