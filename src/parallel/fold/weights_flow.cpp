#include "octavo/parallel/fold/weights_flow.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "octavo/ops/accumulate.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

class WeightsTrip final : public StoreTrip {
 public:
  WeightsTrip(ParamStore& store, Communicator& fold, int block, Direction direction)
      : StoreTrip(store, block), fold_(fold), direction_(direction) {
    if (layout().kind != BlockKind::Embedding || direction == Direction::Forward) fetch(0);
  }

  int num_steps() const override { return num_fold_steps(share(), fold_.size()); }

  at::Tensor panel(int step, int panel) override {
    arrive(step);
    return shards_.at(step % kSlots).panels[panel];
  }

  void step_done(int step) override {
    shards_[step % kSlots] = {};
    if (direction_ == Direction::Backward) send_back(step);
  }

  void finish() override {
    for (Returning& each : returning_) arrive(each);
    returning_.clear();
  }

 protected:
  Interval part_of(int step) const override { return units_of_fold_step(share(), fold_.size(), step); }

  at::Tensor gradient(int step, int panel) override {
    if (gradients_.empty()) {
      gradients_.resize(num_panels());
      gradients_step_ = step;
    }
    internal_check(gradients_step_ == step, "[parallel] gradients of a step that is over");
    at::Tensor& sum = gradients_[panel];
    if (!sum.defined()) {
      const CategoryScope scope(MemoryCategory::Communication);
      sum = at::zeros({rows_of(step, panel).size(), width(panel)}, store().gradients().options());
    }
    return sum;
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
    std::vector<std::pair<at::Tensor, at::Tensor>> own;  // where the sum arrives, and the gradient that it is added to
    std::vector<at::Tensor> sums;
    std::vector<Pending> pending;
  };

  int num_panels() const { return static_cast<int>(layout().panels.size()); }
  std::int64_t width(int panel) const { return layout().panels[panel].width; }

  /// Calls body(owner, rows) for each rank that stores rows of the step.
  template <class Body>
  void for_each_owner(int step, int panel, const Body& body) const {
    for_each_fold_owner(share(), layout().panels[panel], store().placement().slabs[slab(panel)].unit_rows, fold_.size(),
                        step, body);
  }

  /// Rows of a tensor that lies like the panel's rows here.
  at::Tensor own(const at::Tensor& stored, int panel, Interval rows) const {
    return stored.narrow(0, rows.begin - store().placement().slabs[slab(panel)].rows.begin, rows.size());
  }

  /// Starts to bring a step's rows.
  void fetch(int step) {
    const CategoryScope scope(MemoryCategory::Communication);
    Shard& shard = shards_[step % kSlots];
    internal_check(shard.step < 0, "[parallel] a step's rows are fetched while older ones are in use");
    shard.step = step;
    for (int panel = 0; panel < num_panels(); ++panel) {
      const Interval rows = rows_of(step, panel);
      const at::Tensor stored = store().weight(slab(panel));
      const Interval here = store().placement().slabs[slab(panel)].rows;
      const bool is_own = rows == intersection(rows, here);
      const at::Tensor whole =
          is_own ? own(stored, panel, rows) : at::empty({rows.size(), width(panel)}, stored.options());
      for_each_owner(step, panel, [&](int owner, Interval part) {
        const at::Tensor place = whole.narrow(0, part.begin - rows.begin, part.size());
        if (owner == fold_.index() && !is_own) place.copy_(own(stored, panel, part));
        shard.arriving.push_back(fold_.broadcast(place, owner, Purpose::Weights));
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

  void send_back(int step) {
    // Of older steps one may be on its way: two steps' gradients are here at most.
    while (returning_.size() > 1) {
      arrive(returning_.front());
      returning_.erase(returning_.begin());
    }
    Returning& back = returning_.emplace_back();
    for (int panel = 0; panel < num_panels(); ++panel) {
      const at::Tensor sum = gradient(step, panel);
      const Interval rows = rows_of(step, panel);
      const at::Tensor stored = store().gradient(slab(panel));
      for_each_owner(step, panel, [&](int owner, Interval part) {
        const at::Tensor place = sum.narrow(0, part.begin - rows.begin, part.size());
        back.pending.push_back(fold_.reduce(place, owner, Purpose::Gradients));
        if (owner == fold_.index()) back.own.emplace_back(place, own(stored, panel, part));
      });
      back.sums.push_back(sum);
    }
    gradients_.clear();
  }

  void arrive(Returning& back) {
    for (Pending& pending : back.pending) pending.wait();
    for (const auto& [sum, target] : back.own) ops::accumulate_(target, sum);
  }

  Communicator& fold_;
  const Direction direction_;
  std::array<Shard, kSlots> shards_;
  std::vector<at::Tensor> gradients_;  // of the step in use, by panel
  int gradients_step_ = -1;
  std::vector<Returning> returning_;
};

class WeightsFlow final : public Flow {
 public:
  WeightsFlow(ParamStore& store, Communicator& fold, int block) : store_(store), fold_(fold), block_(block) {}
  int num_steps() const override { return num_fold_steps(store_.placement().shares[block_], fold_.size()); }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<WeightsTrip>(store_, fold_, block_, direction);
  }

 private:
  ParamStore& store_;
  Communicator& fold_;
  int block_;
};

}  // namespace

std::unique_ptr<Flow> make_weights_flow(ParamStore& store, Communicator& fold, int block) {
  return std::make_unique<WeightsFlow>(store, fold, block);
}

}  // namespace octavo
