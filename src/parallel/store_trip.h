// What trips over the weights of a store have in common, wherever the rows of a step are.
#pragma once

#include "octavo/ops/weight_ref.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

/// A trip over the units that the store's placement computes here of one block. Common vectors are always at hand.
class StoreTrip : public WeightTrip {
 public:
  /// The store must outlive this.
  StoreTrip(ParamStore& store, int block) : store_(store), block_(block) {}

  void then(WeightTrip& next) final { next_ = &next; }
  UnitRange units(int step) const final;
  std::int64_t most_units() const override { return (share().computed_units() + num_steps() - 1) / num_steps(); }
  bool counts() const final { return share().counts(); }
  at::Tensor common(int common) final;
  void add_product(int step, int panel, const at::Tensor& a, const at::Tensor& b) final;
  at::Tensor look_up(int step, int panel, const at::Tensor& ids) final;
  void add_rows(int step, int panel, const at::Tensor& ids, const at::Tensor& dx) final;
  void add_common(int common, const at::Tensor& gradient) final;

 protected:
  /// The units of a step, of those that are computed here.
  virtual Interval part_of(int step) const = 0;
  /// Where gradients are added up: [rows, width], sum dtype.
  struct GradientTerms {
    at::Tensor sum;
    bool is_empty;  // it has no values yet: the first term is written
  };
  /// Those of the step's rows of a panel. Counts as the first term's place once it was asked for.
  virtual GradientTerms gradient(int step, int panel) = 0;

  /// The trip after this one, if any, may fetch more.
  void let_next_fetch(Half half) {
    if (next_ != nullptr) next_->fetch_more(half);
  }

  ParamStore& store() const { return store_; }
  const BlockLayout& layout() const { return store_.table().blocks()[block_]; }
  const BlockShare& share() const { return store_.placement().shares[block_]; }
  int slab(int panel) const { return store_.table().panel_slab(block_, panel); }
  /// Rows of the panel that a step uses, of those of all units computed here.
  Interval rows_of(int step, int panel) const;

 private:
  int common_slab(int common) const { return store_.table().common_slab(block_, common); }

  ParamStore& store_;
  int block_;
  WeightTrip* next_ = nullptr;
};

}  // namespace octavo
