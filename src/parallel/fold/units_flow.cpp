#include "octavo/parallel/fold/units_flow.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/layout/fold_units.h"
#include "octavo/memory/account.h"
#include "octavo/ops/accumulate.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

/// What all trips of a flow know.
struct UnitsPlan {
  Interval units;                    // of this rank, of those of all ranks of the axis
  int num_steps = 1;                 // of this rank
  std::int64_t most_units = 0;       // in a step of any rank
  bool overlap = true;               // rows travel before they are used
  bool any_foreign = false;          // on any rank
  std::vector<ForeignRows> foreign;  // that this rank uses or stores
};

class UnitsTrip final : public StoreTrip {
 public:
  UnitsTrip(ParamStore& store, Communicator& fold, int block, const UnitsPlan& plan, Direction direction)
      : StoreTrip(store, block), fold_(fold), plan_(plan), direction_(direction), panels_(layout().panels.size()) {}

  int num_steps() const override { return plan_.num_steps; }
  std::int64_t most_units() const override { return plan_.most_units; }

  /// Only rows that travel need leave. What is fetched are both halves at once, so that on every rank the messages have
  /// one order.
  void fetch_more(Half half) override {
    if (!plan_.overlap) return;
    bool& has_leave = has_leave_[static_cast<int>(half)];
    if (!plan_.any_foreign || std::exchange(has_leave, true)) return let_next_fetch(half);
    if (half == Half::Project) fetch();
  }

  at::Tensor panel(int step, int panel) override {
    fetch();
    for (Pending& pending : arriving_) pending.wait();
    arriving_.clear();
    const at::Tensor& fetched = panels_[panel].fetched;
    return fetched.defined() ? of_step(fetched, step, panel) : stored(store().weight(slab(panel)), step, panel);
  }

  /// Every rank comes here, also one without units: what it sends is posted, between the same collectives as elsewhere.
  void half_done(int step, Half half) override {
    if (!plan_.any_foreign || step + 1 < num_steps()) return;
    fetch();
    if (direction_ == Direction::Backward) send_back(half);
    for (int panel = 0; panel < static_cast<int>(panels_.size()); ++panel) {
      if (layout().panels[panel].half == half) panels_[panel] = {};
    }
    if (plan_.overlap) let_next_fetch(half);
  }

  bool is_returning() const override { return plan_.any_foreign && direction_ == Direction::Backward; }

  void finish() override {
    sent_.clear();
    for (Arriving& each : returned_) {
      each.pending.wait();
      ops::accumulate_(each.target, each.rows);
    }
    returned_.clear();
  }

 protected:
  Interval part_of(int step) const override {
    const Interval part = even_part(plan_.units.size(), plan_.num_steps, step);
    return {plan_.units.begin + part.begin, plan_.units.begin + part.end};
  }

  GradientTerms gradient(int step, int panel) override {
    fetch();
    Panel& own = panels_[panel];
    if (!own.fetched.defined()) return {stored(store().gradient(slab(panel)), step, panel), /*is_empty=*/false};
    if (!own.gradient.defined()) {
      const CategoryScope scope(MemoryCategory::Communication);
      own.gradient = at::empty(own.fetched.sizes(), store().gradients().options());
    }
    const bool is_empty = step >= own.num_steps_begun;
    own.num_steps_begun = std::max(own.num_steps_begun, step + 1);
    return {of_step(own.gradient, step, panel), is_empty};
  }

 private:
  /// A panel of which other ranks store rows that are used here: all rows of this rank's units. Else without tensors.
  struct Panel {
    at::Tensor fetched, gradient;
    int num_steps_begun = 0;  // whose gradients were added up or are
  };
  /// Gradients from another rank, and where they are added.
  struct Arriving {
    at::Tensor rows, target;
    Pending pending;
  };

  /// Rows of the panel that this rank uses, and those that it stores.
  Interval used(int panel) const {
    const std::int64_t rows = share().rows_per_unit(layout().panels[panel]);
    return {plan_.units.begin * rows, plan_.units.end * rows};
  }
  Interval kept(int panel) const { return store().placement().slabs[slab(panel)].rows; }

  static at::Tensor rows_from(const at::Tensor& tensor, std::int64_t first_row, Interval rows) {
    return tensor.narrow(0, rows.begin - first_row, rows.size());
  }
  at::Tensor of_step(const at::Tensor& whole, int step, int panel) const {
    return rows_from(whole, used(panel).begin, rows_of(step, panel));
  }
  at::Tensor stored(const at::Tensor& whole, int step, int panel) const {
    return rows_from(whole, kept(panel).begin, rows_of(step, panel));
  }

  /// Once: the rows of this rank's units that others store come, those that it stores go.
  void fetch() {
    if (std::exchange(is_fetched_, true)) return;
    const CategoryScope scope(MemoryCategory::Communication);
    for (const ForeignRows& each : plan_.foreign) {
      const at::Tensor weights = store().weight(slab(each.panel));
      if (each.owner == fold_.index()) {
        sent_.push_back(fold_.send(rows_from(weights, kept(each.panel).begin, each.rows), each.user, Purpose::Weights));
        continue;
      }
      const Interval rows = used(each.panel);
      at::Tensor& whole = panels_[each.panel].fetched;
      if (!whole.defined()) {
        whole = at::empty({rows.size(), weights.size(1)}, weights.options());
        const Interval own = intersection(rows, kept(each.panel));
        rows_from(whole, rows.begin, own).copy_(rows_from(weights, kept(each.panel).begin, own));
      }
      arriving_.push_back(fold_.recv(rows_from(whole, rows.begin, each.rows), each.owner, Purpose::Weights));
    }
  }

  /// The gradients of foreign rows go to their owners. Every row has one user, so each owner adds one term to a row.
  void send_back(Half half) {
    const CategoryScope scope(MemoryCategory::Communication);
    for (const ForeignRows& each : plan_.foreign) {
      if (layout().panels[each.panel].half != half) continue;
      const Panel& panel = panels_[each.panel];
      if (each.user == fold_.index()) {
        internal_check(panel.num_steps_begun == num_steps(), "[parallel] a step without gradients");
        sent_.push_back(
            fold_.send(rows_from(panel.gradient, used(each.panel).begin, each.rows), each.owner, Purpose::Gradients));
      } else {
        const at::Tensor target = rows_from(store().gradient(slab(each.panel)), kept(each.panel).begin, each.rows);
        const at::Tensor rows = at::empty_like(target);
        returned_.push_back({rows, target, fold_.recv(rows, each.user, Purpose::Gradients)});
      }
    }
    for (int panel = 0; panel < static_cast<int>(panels_.size()); ++panel) {
      if (layout().panels[panel].half != half || !panels_[panel].gradient.defined()) continue;
      const Interval own = intersection(used(panel), kept(panel));
      ops::accumulate_(rows_from(store().gradient(slab(panel)), kept(panel).begin, own),
                       rows_from(panels_[panel].gradient, used(panel).begin, own));
    }
  }

  Communicator& fold_;
  const UnitsPlan& plan_;
  const Direction direction_;
  bool is_fetched_ = false;
  std::array<bool, 2> has_leave_ = {false, false};  // by half, to fetch ahead
  std::vector<Panel> panels_;
  std::vector<Pending> arriving_, sent_;
  std::vector<Arriving> returned_;
};

class UnitsFlow final : public Flow {
 public:
  UnitsFlow(ParamStore& store, Communicator& fold, int block, int num_steps, bool overlap)
      : store_(store), fold_(fold), block_(block) {
    const BlockLayout& layout = store.table().blocks()[block];
    const BlockShare& share = store.placement().shares[block];
    const std::vector<Interval> units = fold_units(layout, share, fold.size());
    plan_.units = units[fold.index()];
    plan_.num_steps = steps_of(plan_.units, num_steps);
    for (const Interval& each : units) {
      const int steps = steps_of(each, num_steps);
      plan_.most_units = std::max(plan_.most_units, (each.size() + steps - 1) / steps);
    }
    plan_.overlap = overlap;
    plan_.foreign = foreign_rows(layout, share, fold.size());
    plan_.any_foreign = !plan_.foreign.empty();
    std::erase_if(plan_.foreign,
                  [&](const ForeignRows& rows) { return rows.user != fold.index() && rows.owner != fold.index(); });
  }

  int num_steps() const override { return plan_.num_steps; }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<UnitsTrip>(store_, fold_, block_, plan_, direction);
  }

 private:
  static int steps_of(const Interval& units, int num_steps) {
    return static_cast<int>(std::clamp<std::int64_t>(units.size(), 1, num_steps));
  }

  ParamStore& store_;
  Communicator& fold_;
  int block_;
  UnitsPlan plan_;
};

}  // namespace

std::unique_ptr<Flow> make_units_flow(ParamStore& store, Communicator& fold, int block, int num_steps, bool overlap) {
  return std::make_unique<UnitsFlow>(store, fold, block, num_steps, overlap);
}

}  // namespace octavo
