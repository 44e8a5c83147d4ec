#include "octavo/parallel/fold/weights_flow.h"

#include <ATen/ATen.h>

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/comm/without_memory.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "parallel/fold/gradient_returns.h"
#include "parallel/fold/ring_flow.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

struct WeightsPlan {
  Communicator& fold;
  int parts;  // that the block is taken in (layout/fold_steps.h)
  bool overlap;
};

class WeightsTrip final : public StoreTrip {
 public:
  WeightsTrip(ParamStore& store, int block, Direction direction, const WeightsPlan& plan, GradientReturns& returns)
      : StoreTrip(store, block),
        fold_(plan.fold),
        parts_(plan.parts),
        direction_(direction),
        overlap_(plan.overlap),
        returns_(returns),
        weights_(layout().panels.size()),
        gradients_(layout().panels.size()) {}

  int num_steps() const override { return num_fold_steps(share(), parts_); }

  void fetch_more(Half half) override {
    if (!overlap_) return;
    int& num_fetched = num_fetched_[static_cast<int>(half)];
    if (num_fetched == num_steps() || !reads_weights()) {
      let_next_fetch(half);
    } else {
      fetch(num_fetched++, half);
    }
  }

  at::Tensor panel(int step, int panel) override {
    const Half half = layout().panels[panel].half;
    int& num_fetched = num_fetched_[static_cast<int>(half)];
    if (num_fetched == step) fetch(num_fetched++, half);
    Rows& rows = weights_[panel].at(step - num_done_[static_cast<int>(half)]);
    for (Pending& pending : rows.arriving) pending.wait();
    return rows.whole;
  }

  void half_done(int step, Half half) override {
    int& num_done = num_done_[static_cast<int>(half)];
    internal_check(num_done == step, "[parallel] a step is done out of order");
    ++num_done;
    // Weights first: they are needed sooner than gradients.
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half == half && reads_weights()) weights_[panel].pop_front();
    }
    if (reads_weights()) fetch_more(half);
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half == half && direction_ == Direction::Backward) send_back(step, panel);
    }
  }

  bool is_returning() const override { return num_returned_ > 0; }
  void finish() override {
    returns_.finish(num_returned_);
    lent_.clear();
  }

 protected:
  Interval part_of(int step) const override { return units_of_fold_step(share(), parts_, step); }

  GradientTerms gradient(int step, int panel) override {
    if (step >= num_steps_begun_) {
      returns_.begin_step();
      num_returned_ = returns_.num_steps();
      num_steps_begun_ = step + 1;
    }
    at::Tensor& sum = gradients_[panel];
    if (sum.defined()) return {sum, /*is_empty=*/false};
    const Interval rows = rows_of(step, panel);
    if (rows == own_rows(step, panel)) {
      sum = own(store().gradient(slab(panel)), panel, rows);
      return {sum, /*is_empty=*/false};
    }
    const CategoryScope scope(MemoryCategory::Communication);
    sum = at::empty({rows.size(), width(panel)}, store().gradients().options());
    return {sum, /*is_empty=*/true};
  }

 private:
  /// A step's rows of a panel.
  struct Rows {
    at::Tensor whole;
    std::vector<Pending> arriving;  // what was borrowed is given back with them
  };

  /// The embedding's backward does not.
  bool reads_weights() const { return layout().kind != BlockKind::Embedding || direction_ == Direction::Forward; }
  int num_panels() const { return static_cast<int>(layout().panels.size()); }
  std::int64_t width(int panel) const { return layout().panels[panel].width; }
  /// Of the step's rows of a panel, those that are stored here.
  Interval own_rows(int step, int panel) const {
    return intersection(rows_of(step, panel), store().placement().slabs[slab(panel)].rows);
  }

  /// Calls body(owner, rows) for each rank that stores rows of the step.
  template <class Body>
  void for_each_owner(int step, int panel, const Body& body) const {
    for_each_fold_owner(share(), layout().panels[panel], store().placement().slabs[slab(panel)].unit_rows, fold_.size(),
                        parts_, step, body);
  }

  /// Rows of a tensor that lies like the panel's rows here.
  at::Tensor own(const at::Tensor& stored, int panel, Interval rows) const {
    return stored.narrow(0, rows.begin - store().placement().slabs[slab(panel)].rows.begin, rows.size());
  }

  /// Starts to bring the rows of a half of a step.
  void fetch(int step, Half half) {
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half == half) weights_[panel].push_back(fetch_rows(step, panel));
    }
  }

  Rows fetch_rows(int step, int panel) {
    const CategoryScope scope(MemoryCategory::Communication);
    const Interval rows = rows_of(step, panel);
    const at::Tensor stored = store().weight(slab(panel));
    Rows fetched;
    for_each_owner(step, panel, [&](int owner, Interval part) {
      const bool is_here = owner == fold_.index();
      if (part == rows) {
        fetched.whole =
            is_here ? own(stored, panel, rows) : without_memory({rows.size(), width(panel)}, stored.options());
        (is_here ? lent_ : fetched.arriving).push_back(fold_.share(fetched.whole, owner, Purpose::Weights));
        return;
      }
      if (!fetched.whole.defined()) fetched.whole = at::empty({rows.size(), width(panel)}, stored.options());
      const at::Tensor place = fetched.whole.narrow(0, part.begin - rows.begin, part.size());
      if (is_here) place.copy_(own(stored, panel, part));
      fetched.arriving.push_back(fold_.broadcast(place, owner, Purpose::Weights));
    });
    return fetched;
  }

  void send_back(int step, int panel) {
    const Interval rows = rows_of(step, panel);
    const at::Tensor stored = store().gradient(slab(panel));
    std::vector<OwnedRows> parts;
    for_each_owner(step, panel, [&](int owner, Interval part) {
      parts.push_back({owner,
                       {part.begin - rows.begin, part.end - rows.begin},
                       owner == fold_.index() ? own(stored, panel, part) : at::Tensor()});
    });
    returns_.send(std::exchange(gradients_[panel], at::Tensor()), std::move(parts));
  }

  Communicator& fold_;
  const int parts_;
  const Direction direction_;
  const bool overlap_;
  GradientReturns& returns_;
  std::array<int, 2> num_fetched_ = {0, 0}, num_done_ = {0, 0};  // steps, by half
  std::vector<std::deque<Rows>> weights_;  // by panel: of the steps that were fetched and are not done
  std::vector<Pending> lent_;              // rows that peers may still read
  std::vector<at::Tensor> gradients_;      // of the step in use, by panel
  int num_steps_begun_ = 0;                // whose gradients were added up or are
  std::int64_t num_returned_ = 0;          // steps that returns_ has seen with the last of this trip's
};

class WeightsFlow final : public Flow {
 public:
  WeightsFlow(ParamStore& store, int block, const WeightsPlan& plan, std::shared_ptr<GradientReturns> returns)
      : store_(store), block_(block), plan_(plan), returns_(std::move(returns)) {}
  int num_steps() const override { return num_fold_steps(store_.placement().shares[block_], plan_.parts); }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<WeightsTrip>(store_, block_, direction, plan_, *returns_);
  }

 private:
  ParamStore& store_;
  const int block_;
  const WeightsPlan plan_;
  const std::shared_ptr<GradientReturns> returns_;
};

}  // namespace

std::vector<std::unique_ptr<Flow>> make_weights_flows(ParamStore& store, RankGroups& groups, bool overlap) {
  Communicator& fold = *groups.fold;
  const auto returns = std::make_shared<GradientReturns>(fold, overlap);
  const auto shared = std::make_shared<RingShared>(groups, overlap, returns);
  std::vector<std::unique_ptr<Flow>> flows;
  for (int block = 0; block < static_cast<int>(store.table().blocks().size()); ++block) {
    const BlockKind kind = store.table().blocks()[block].kind;
    if (goes_round(kind, store.placement().shares[block], fold.size())) {
      flows.push_back(make_ring_flow(store, block, shared));
    } else {
      const WeightsPlan plan{fold, fold_parts(groups.layout, kind), overlap};
      flows.push_back(std::make_unique<WeightsFlow>(store, block, plan, returns));
    }
  }
  return flows;
}

}  // namespace octavo
