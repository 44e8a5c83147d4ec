#include "octavo/parallel/fold/weights_flow.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "octavo/ops/accumulate.h"
#include "octavo/ops/embedding.h"
#include "octavo/ops/matmul.h"

namespace octavo {
namespace {

/// What a trip needs to know about its block.
class FoldedBlock {
 public:
  FoldedBlock(ParamStore& store, Communicator& fold, int block) : store_(store), fold_(fold), block_(block) {}

  ParamStore& store() const { return store_; }
  Communicator& fold() const { return fold_; }
  const BlockLayout& layout() const { return store_.table().blocks()[block_]; }
  const BlockShare& share() const { return store_.placement().shares[block_]; }
  int num_panels() const { return static_cast<int>(layout().panels.size()); }
  int num_steps() const { return num_fold_steps(share(), fold_.size()); }
  int slab(int panel) const { return store_.table().panel_slab(block_, panel); }
  int common_slab(int common) const { return store_.table().common_slab(block_, common); }
  std::int64_t width(int panel) const { return layout().panels[panel].width; }

  /// Rows of the panel that a step uses, and those that a rank stores, both of the rows of all units computed.
  Interval step_rows(int step, int panel) const {
    const Interval units = units_of_fold_step(share(), fold_.size(), step);
    const std::int64_t rows = share().rows_per_unit(layout().panels[panel]);
    return {units.begin * rows, units.end * rows};
  }
  Interval stored_rows(int panel, int index) const {
    return fold_part(store_.placement().slabs[slab(panel)].unit_rows, fold_.size(), index);
  }

  /// Calls body(owner, rows) for each rank that stores rows of the step.
  template <class Body>
  void for_each_owner(int step, int panel, const Body& body) const {
    for_each_fold_owner(share(), layout().panels[panel], store_.placement().slabs[slab(panel)].unit_rows, fold_.size(),
                        step, body);
  }

  /// Rows of a tensor that lies like the panel's stored rows here.
  at::Tensor own(const at::Tensor& stored, int panel, Interval rows) const {
    return stored.narrow(0, rows.begin - stored_rows(panel, fold_.index()).begin, rows.size());
  }

 private:
  ParamStore& store_;
  Communicator& fold_;
  int block_;
};

class WeightsTrip final : public WeightTrip {
 public:
  WeightsTrip(const FoldedBlock& block, Direction direction) : block_(block), direction_(direction) {
    if (block_.layout().kind != BlockKind::Embedding || direction == Direction::Forward) fetch(0);
  }

  int num_steps() const override { return block_.num_steps(); }

  UnitRange units(int step) const override {
    const Interval part = units_of_fold_step(block_.share(), block_.fold().size(), step), all = block_.share().units;
    const std::int64_t begin = std::min(all.end, all.begin + part.begin);
    const std::int64_t end = std::min(all.end, all.begin + part.end);
    return {begin, end, part.size() - (end - begin)};
  }

  bool counts() const override { return block_.share().counts(); }

  at::Tensor panel(int step, int panel) override {
    arrive(step);
    return shards_.at(step % kSlots).panels[panel];
  }

  at::Tensor common(int common) override { return block_.store().weight(block_.common_slab(common)).select(0, 0); }

  void add_product(int step, int panel, const at::Tensor& a, const at::Tensor& b) override {
    at::Tensor sum = gradient(step, panel);
    if (sum.scalar_type() == a.scalar_type()) {
      ops::addmm_(sum, a.t(), b);
    } else {  // libtorch has no product of bfloat16 factors that adds into float32
      ops::accumulate_(sum, ops::mm(a.t(), b));
    }
  }

  at::Tensor look_up(int step, int panel_index, const at::Tensor& ids) override {
    return ops::embedding_forward(ids, panel(step, panel_index), units(step).begin, block_.layout().num_units);
  }

  void add_rows(int step, int panel, const at::Tensor& ids, const at::Tensor& dx) override {
    ops::embedding_backward_(gradient(step, panel), ids, dx, units(step).begin);
  }

  void add_common(int common, const at::Tensor& gradient) override {
    if (block_.layout().commons[common].in_units && !counts()) return;
    ops::accumulate_(block_.store().gradient(block_.common_slab(common)).select(0, 0), gradient);
  }

  void step_done(int step) override {
    shards_[step % kSlots] = {};
    if (direction_ == Direction::Backward) send_back(step);
  }

  void finish() override {
    for (Returning& each : returning_) arrive(each);
    returning_.clear();
  }

 private:
  static constexpr int kSlots = 2;  // steps whose rows are here at once: the one in use and the next

  struct Shard {
    int step = -1;
    std::vector<at::Tensor> panels;
    std::vector<Pending> arriving;
  };

  /// A step's gradients on their way to the owners of its rows.
  struct Returning {
    int step = -1;
    std::vector<std::pair<at::Tensor, at::Tensor>> own;  // where the sum arrives, and the gradient that it is added to
    std::vector<at::Tensor> sums;
    std::vector<Pending> pending;
  };

  /// Starts to bring a step's rows.
  void fetch(int step) {
    const CategoryScope scope(MemoryCategory::Communication);
    Shard& shard = shards_[step % kSlots];
    internal_check(shard.step < 0, "[parallel] a step's rows are fetched while older ones are in use");
    shard.step = step;
    for (int panel = 0; panel < block_.num_panels(); ++panel) {
      const Interval rows = block_.step_rows(step, panel);
      const at::Tensor stored = block_.store().weight(block_.slab(panel));
      const Interval here = block_.stored_rows(panel, block_.fold().index());
      const bool is_own = rows == intersection(rows, here);
      const at::Tensor whole =
          is_own ? block_.own(stored, panel, rows) : at::empty({rows.size(), block_.width(panel)}, stored.options());
      block_.for_each_owner(step, panel, [&](int owner, Interval part) {
        const at::Tensor place = whole.narrow(0, part.begin - rows.begin, part.size());
        if (owner == block_.fold().index() && !is_own) place.copy_(block_.own(stored, panel, part));
        shard.arriving.push_back(block_.fold().broadcast(place, owner, Purpose::Weights));
      });
      shard.panels.push_back(whole);
    }
  }

  /// The step's rows are here, and the next step's on their way.
  void arrive(int step) {
    Shard& shard = shards_[step % kSlots];
    if (shard.step != step) fetch(step);
    for (Pending& pending : shard.arriving) pending.wait();
    shard.arriving.clear();
    if (step + 1 < num_steps() && shards_[(step + 1) % kSlots].step < 0) fetch(step + 1);
  }

  at::Tensor gradient(int step, int panel) {
    if (gradients_.empty()) {
      gradients_.resize(block_.num_panels());
      gradients_step_ = step;
    }
    internal_check(gradients_step_ == step, "[parallel] gradients of a step that is over");
    at::Tensor& sum = gradients_[panel];
    if (!sum.defined()) {
      const CategoryScope scope(MemoryCategory::Communication);
      sum =
          at::zeros({block_.step_rows(step, panel).size(), block_.width(panel)}, block_.store().gradients().options());
    }
    return sum;
  }

  void send_back(int step) {
    // Of older steps one may be on its way: two steps' gradients are here at most.
    while (returning_.size() > 1) {
      arrive(returning_.front());
      returning_.erase(returning_.begin());
    }
    Returning& back = returning_.emplace_back();
    for (int panel = 0; panel < block_.num_panels(); ++panel) {
      const at::Tensor sum = gradient(step, panel);
      const Interval rows = block_.step_rows(step, panel);
      const at::Tensor stored = block_.store().gradient(block_.slab(panel));
      block_.for_each_owner(step, panel, [&](int owner, Interval part) {
        const at::Tensor place = sum.narrow(0, part.begin - rows.begin, part.size());
        back.pending.push_back(block_.fold().reduce(place, owner, Purpose::Gradients));
        if (owner == block_.fold().index()) back.own.emplace_back(place, block_.own(stored, panel, part));
      });
      back.sums.push_back(sum);
    }
    gradients_.clear();
  }

  void arrive(Returning& back) {
    for (Pending& pending : back.pending) pending.wait();
    for (const auto& [sum, target] : back.own) ops::accumulate_(target, sum);
  }

  const FoldedBlock& block_;
  const Direction direction_;
  std::array<Shard, kSlots> shards_;
  std::vector<at::Tensor> gradients_;  // of the step in use, by panel
  int gradients_step_ = -1;
  std::vector<Returning> returning_;
};

class WeightsFlow final : public Flow {
 public:
  WeightsFlow(ParamStore& store, Communicator& fold, int block) : block_(store, fold, block) {}
  int num_steps() const override { return block_.num_steps(); }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<WeightsTrip>(block_, direction);
  }

 private:
  FoldedBlock block_;
};

}  // namespace

std::unique_ptr<Flow> make_weights_flow(ParamStore& store, Communicator& fold, int block) {
  return std::make_unique<WeightsFlow>(store, fold, block);
}

}  // namespace octavo
