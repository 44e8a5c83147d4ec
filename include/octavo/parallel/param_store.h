// The tensors that one rank keeps between steps: weights, gradients and optimizer state, each one flat piece of memory
// laid out by the placement.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "octavo/layout/placement.h"

namespace octavo {

at::ScalarType scalar_type(ElementType type);

class ParamStore {
 public:
  /// Allocates weights; `for_training` also gradients (zero), moments (zero) and, under bfloat16, float32 masters.
  /// `table` must outlive this. `device`: CPU or meta. Weights are zero until load(); padding stays so.
  ParamStore(const ParamTable& table, Placement placement, ElementType compute, at::Device device, bool for_training);

  const ParamTable& table() const { return *table_; }
  const Placement& placement() const { return placement_; }
  ElementType compute_type() const { return compute_; }
  at::Device device() const { return weights_.device(); }

  /// The rows of a slab that this rank stores, padding included: [rows, width].
  at::Tensor weight(int slab) const { return slab_view(weights_, slab); }
  at::Tensor gradient(int slab) const { return slab_view(gradients_, slab); }

  /// All of it, [local_elements]: weights in the compute type, gradients in the sum type.
  const at::Tensor& weights() const { return weights_; }
  const at::Tensor& gradients() const { return gradients_; }

  /// State of optimized interval `i` of the placement, in the sum type. masters are the weights themselves unless they
  /// are kept in a narrower type.
  at::Tensor masters(int i) const;
  at::Tensor first_moments(int i) const { return optimizer_view(first_moments_, i); }
  at::Tensor second_moments(int i) const { return optimizer_view(second_moments_, i); }

  /// Rows [first_row, first_row + rows.size() / columns) of the checkpoint matrix of a parameter.
  using RowSource = std::function<void(const Parameter&, std::int64_t first_row, std::span<double> rows)>;
  /// Fills weights (and masters) from `source`, a block of rows at a time. Local. Nothing happens on the meta device.
  void load(const RowSource& source);
  /// Checkpoint rows of the weights (or of any tensor laid out like them, as gradients()): the elements that this rank
  /// stores; the others are left as they are.
  void read_rows(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row,
                 std::span<double> rows) const;
  /// The same for the elements that this rank is primary for: over the ranks, each element exactly once.
  void read_primary_rows(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row,
                         std::span<double> rows) const;

 private:
  at::Tensor slab_view(const at::Tensor& flat, int slab) const;
  at::Tensor optimizer_view(const at::Tensor& flat, int i) const;
  void scatter_rows(const Parameter& parameter, std::int64_t width, std::int64_t first_row,
                    std::span<const double> rows);
  void read_local(const at::Tensor& flat, const Parameter& parameter, std::int64_t first_row, Interval local,
                  std::span<double> rows) const;

  const ParamTable* table_;
  Placement placement_;
  ElementType compute_;
  std::vector<std::int64_t> optimizer_offsets_;  // of each optimized interval in the optimizer's tensors
  at::Tensor weights_, gradients_, masters_, first_moments_, second_moments_;
};

}  // namespace octavo
