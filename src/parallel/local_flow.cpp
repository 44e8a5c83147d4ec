#include "octavo/parallel/local_flow.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "octavo/ops/accumulate.h"
#include "octavo/ops/embedding.h"
#include "octavo/ops/matmul.h"

namespace octavo {
namespace {

class LocalTrip final : public WeightTrip {
 public:
  LocalTrip(ParamStore& store, int block, int num_steps) : store_(store), block_(block), num_steps_(num_steps) {}

  int num_steps() const override { return num_steps_; }
  void step_done(int) override {}
  void finish() override {}

  UnitRange units(int step) const override {
    const Interval part = part_of(step), own = share().units;
    const std::int64_t begin = std::min(own.end, own.begin + part.begin);
    const std::int64_t end = std::min(own.end, own.begin + part.end);
    return {begin, end, part.size() - (end - begin)};
  }

  bool counts() const override { return share().counts(); }

  at::Tensor panel(int step, int panel) override { return rows_of(store_.weight(slab(panel)), step, panel); }
  at::Tensor common(int common) override { return store_.weight(common_slab(common)).select(0, 0); }

  void add_product(int step, int panel, const at::Tensor& a, const at::Tensor& b) override {
    at::Tensor gradient = rows_of(store_.gradient(slab(panel)), step, panel);
    if (gradient.scalar_type() == a.scalar_type()) {
      ops::addmm_(gradient, a.t(), b);
    } else {  // libtorch has no product of bfloat16 factors that adds into float32
      ops::accumulate_(gradient, ops::mm(a.t(), b));
    }
  }

  at::Tensor look_up(int step, int panel_index, const at::Tensor& ids) override {
    return ops::embedding_forward(ids, panel(step, panel_index), units(step).begin, layout().num_units);
  }
  void add_rows(int step, int panel, const at::Tensor& ids, const at::Tensor& dx) override {
    ops::embedding_backward_(rows_of(store_.gradient(slab(panel)), step, panel), ids, dx, units(step).begin);
  }

  void add_common(int common, const at::Tensor& gradient) override {
    if (layout().commons[common].in_units && !counts()) return;
    ops::accumulate_(store_.gradient(common_slab(common)).select(0, 0), gradient);
  }

 private:
  const BlockLayout& layout() const { return store_.table().blocks()[block_]; }
  const BlockShare& share() const { return store_.placement().shares[block_]; }
  /// Of the units computed here.
  Interval part_of(int step) const { return even_part(share().computed_units(), num_steps_, step); }
  int slab(int panel) const { return store_.table().panel_slab(block_, panel); }
  int common_slab(int common) const { return store_.table().common_slab(block_, common); }

  at::Tensor rows_of(const at::Tensor& whole, int step, int panel) const {
    const std::int64_t rows_per_unit = share().rows_per_unit(layout().panels[panel]);
    const Interval part = part_of(step);
    return whole.narrow(0, part.begin * rows_per_unit, part.size() * rows_per_unit);
  }

  ParamStore& store_;
  int block_, num_steps_;
};

class LocalFlow final : public Flow {
 public:
  LocalFlow(ParamStore& store, int block, int num_steps) : store_(store), block_(block), num_steps_(num_steps) {}
  int num_steps() const override { return num_steps_; }
  std::unique_ptr<WeightTrip> begin(Direction, int) override {
    return std::make_unique<LocalTrip>(store_, block_, num_steps_);
  }

 private:
  ParamStore& store_;
  int block_, num_steps_;
};

}  // namespace

std::unique_ptr<Flow> make_local_flow(ParamStore& store, int block, int num_steps) {
  return std::make_unique<LocalFlow>(store, block, num_steps);
}

int recommended_steps(const BlockLayout& block, const BlockShare& share) {
  constexpr std::int64_t kFewestFeatures = 512, kFewestQueryRows = 256, kMostSteps = 8;
  switch (block.kind) {
    case BlockKind::Embedding:
    case BlockKind::Head:
      return 1;
    case BlockKind::GatedMlp:
      return static_cast<int>(std::clamp<std::int64_t>(share.computed_units() / kFewestFeatures, 1, kMostSteps));
    case BlockKind::Attention: {
      const std::int64_t units = share.computed_units();
      const std::int64_t rows = share.rows_per_unit(block.panels[attention_panels::kOut]) * units;
      return static_cast<int>(std::clamp<std::int64_t>(rows / kFewestQueryRows, 1, std::min(kMostSteps, units)));
    }
  }
  return 1;
}

}  // namespace octavo
