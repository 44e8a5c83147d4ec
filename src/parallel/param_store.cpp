#include "octavo/parallel/param_store.h"

#include <ATen/ATen.h>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/memory/account.h"

namespace octavo {
namespace {

constexpr std::int64_t kRowsAtOnceElements = 1 << 22;  // bounds the float64 staging of load()

/// Calls body(pointer) with a pointer to the elements of `flat` in their own type.
template <class Body>
void with_elements(const at::Tensor& flat, const Body& body) {
  switch (flat.scalar_type()) {
    case at::kFloat:
      return body(flat.data_ptr<float>());
    case at::kDouble:
      return body(flat.data_ptr<double>());
    case at::kBFloat16:
      return body(flat.data_ptr<at::BFloat16>());
    default:
      throw InternalError("[parallel] unexpected element type");
  }
}

template <class T>
void assign(T& element, double value) {
  element = static_cast<T>(value);
}
void assign(at::BFloat16& element, double value) {
  element = static_cast<float>(value);
}

/// Calls body(offset in `rows`, slab element) for those elements of checkpoint rows [first_row, ...) that lie in
/// `wanted` of the slab.
template <class Body>
void for_each_element(const Parameter& parameter, std::int64_t width, std::int64_t first_row, std::int64_t num_elements,
                      Interval wanted, const Body& body) {
  const std::int64_t columns = parameter.matrix_columns(), num_rows = num_elements / columns;
  if (!parameter.transposed) {
    for (std::int64_t r = 0; r < num_rows; ++r) {
      const std::int64_t element = parameter.slab_row(first_row + r) * width;
      const Interval run = intersection(wanted, {element, element + columns});
      for (std::int64_t i = run.begin; i < run.end; ++i) body(r * columns + i - element, i);
    }
    return;
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::int64_t element = parameter.slab_row(c) * width + first_row;
    const Interval run = intersection(wanted, {element, element + num_rows});
    for (std::int64_t i = run.begin; i < run.end; ++i) body((i - element) * columns + c, i);
  }
}

/// The elements of the slab that lie in `local` of this rank's memory.
Interval slab_elements(const StoredPart& part, Interval local) {
  const Interval both = intersection(part.local(), local);
  if (both.empty()) return {};
  const std::int64_t shift = part.elements.begin - part.local_offset;
  return {both.begin + shift, both.end + shift};
}

}  // namespace

at::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::Float32:
      return at::kFloat;
    case ElementType::BFloat16:
      return at::kBFloat16;
    case ElementType::Float64:
      return at::kDouble;
  }
  throw InternalError("[parallel] unknown element type");
}

ParamStore::ParamStore(const ParamTable& table, Placement placement, ElementType compute, at::Device device,
                       bool for_training)
    : table_(&table), placement_(std::move(placement)), compute_(compute) {
  const at::TensorOptions sums = at::TensorOptions(scalar_type(sum_type(compute))).device(device);
  {
    const CategoryScope scope(MemoryCategory::Weights);
    weights_ = at::zeros({placement_.local_elements}, sums.dtype(scalar_type(compute)));
  }
  std::int64_t optimized = 0;
  for (const Interval& interval : placement_.optimized) {
    optimizer_offsets_.push_back(optimized);
    optimized += interval.size();
  }
  if (!for_training) return;
  {
    const CategoryScope scope(MemoryCategory::Gradients);
    gradients_ = at::zeros({placement_.local_elements}, sums);
  }
  const CategoryScope scope(MemoryCategory::Optimizer);
  first_moments_ = at::zeros({optimized}, sums);
  second_moments_ = at::zeros({optimized}, sums);
  if (compute == ElementType::BFloat16) masters_ = at::zeros({optimized}, sums);
}

at::Tensor ParamStore::slab_view(const at::Tensor& flat, int slab) const {
  const StoredSlab& stored = placement_.slabs[slab];
  const std::int64_t width = table_->slabs()[slab].width;
  return flat.narrow(0, stored.local_offset, stored.rows.size() * width).view({stored.rows.size(), width});
}

at::Tensor ParamStore::optimizer_view(const at::Tensor& flat, int i) const {
  return flat.narrow(0, optimizer_offsets_[i], placement_.optimized[i].size());
}

at::Tensor ParamStore::masters(int i) const {
  if (masters_.defined()) return optimizer_view(masters_, i);
  return weights_.narrow(0, placement_.optimized[i].begin, placement_.optimized[i].size());
}

void ParamStore::load(const RowSource& source) {
  if (device().is_meta()) return;
  std::vector<double> rows;
  for (const Parameter& parameter : table_->parameters()) {
    const std::int64_t columns = parameter.matrix_columns(), width = table_->slabs()[parameter.slab].width;
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, kRowsAtOnceElements / columns);
    for (std::int64_t first = 0; first < parameter.matrix_rows(); first += rows_at_once) {
      rows.resize(std::min(rows_at_once, parameter.matrix_rows() - first) * columns);
      source(parameter, first, rows);
      scatter_rows(parameter, width, first, rows);
    }
  }
}

void ParamStore::scatter_rows(const Parameter& parameter, std::int64_t width, std::int64_t first_row,
                              std::span<const double> rows) {
  for (const StoredPart& part : placement_.parts) {
    if (part.slab != parameter.slab) continue;
    const std::int64_t shift = part.local_offset - part.elements.begin;
    with_elements(weights_, [&](auto* weights) {
      for_each_element(
          parameter, width, first_row, rows.size(), part.elements,
          [&](std::int64_t offset, std::int64_t element) { assign(weights[element + shift], rows[offset]); });
    });
    if (!masters_.defined()) continue;
    for (std::size_t i = 0; i < placement_.optimized.size(); ++i) {
      const Interval wanted = slab_elements(part, placement_.optimized[i]);
      const std::int64_t master_shift = shift + optimizer_offsets_[i] - placement_.optimized[i].begin;
      with_elements(masters_, [&](auto* masters) {
        for_each_element(
            parameter, width, first_row, rows.size(), wanted,
            [&](std::int64_t offset, std::int64_t element) { assign(masters[element + master_shift], rows[offset]); });
      });
    }
  }
}

void ParamStore::read_local(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row, Interval local,
                            std::span<double> rows) const {
  const std::int64_t width = table_->slabs()[parameter.slab].width;
  for (const StoredPart& part : placement_.parts) {
    if (part.slab != parameter.slab) continue;
    const std::int64_t shift = part.local_offset - part.elements.begin;
    with_elements(flat, [&](const auto* elements) {
      for_each_element(parameter, width, first_row, rows.size(), slab_elements(part, local),
                       [&](std::int64_t offset, std::int64_t element) {
                         rows[offset] = static_cast<double>(elements[element + shift]);
                       });
    });
  }
}

void ParamStore::read_rows(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row,
                           std::span<double> rows) const {
  read_local(flat, parameter, first_row, {0, placement_.local_elements}, rows);
}

void ParamStore::read_primary_rows(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row,
                                   std::span<double> rows) const {
  for (const Interval& interval : placement_.primary) read_local(flat, parameter, first_row, interval, rows);
}

}  // namespace octavo
