#include "octavo/parallel/local_flow.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parallel/store_trip.h"

namespace octavo {
namespace {

class LocalTrip final : public StoreTrip {
 public:
  LocalTrip(ParamStore& store, int block, int num_steps) : StoreTrip(store, block), num_steps_(num_steps) {}

  int num_steps() const override { return num_steps_; }
  void fetch_more(Half half) override { let_next_fetch(half); }
  void half_done(int, Half) override {}
  bool is_returning() const override { return false; }
  void finish() override {}
  at::Tensor panel(int step, int panel) override { return step_rows(store().weight(slab(panel)), step, panel); }

 protected:
  Interval part_of(int step) const override { return even_part(share().computed_units(), num_steps_, step); }
  GradientTerms gradient(int step, int panel) override {
    return {step_rows(store().gradient(slab(panel)), step, panel), /*is_empty=*/false};
  }

 private:
  at::Tensor step_rows(const at::Tensor& whole, int step, int panel) const {
    const Interval rows = rows_of(step, panel);
    return whole.narrow(0, rows.begin, rows.size());
  }

  int num_steps_;
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

int recommended_steps(const BlockLayout& block, const BlockShare& share, std::int64_t num_units) {
  constexpr std::int64_t kFewestFeatures = 512, kFewestQueryRows = 256, kMostSteps = 8;
  switch (block.kind) {
    case BlockKind::Embedding:
    case BlockKind::Head:
      return 1;
    case BlockKind::DeltaNet:
    case BlockKind::Moe:
      return 1;
    case BlockKind::GatedMlp:
    case BlockKind::SharedExpert:
      return static_cast<int>(std::clamp<std::int64_t>(num_units / kFewestFeatures, 1, kMostSteps));
    case BlockKind::Attention: {
      const std::int64_t rows = share.rows_per_unit(block.panels[attention_panels::kOut]) * num_units;
      const std::int64_t most = std::clamp<std::int64_t>(num_units, 1, kMostSteps);
      return static_cast<int>(std::clamp<std::int64_t>(rows / kFewestQueryRows, 1, most));
    }
  }
  return 1;
}

}  // namespace octavo
