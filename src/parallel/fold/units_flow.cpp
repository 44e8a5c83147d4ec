#include "octavo/parallel/fold/units_flow.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "octavo/layout/fold_steps.h"
#include "octavo/layout/fold_units.h"
#include "octavo/memory/account.h"
#include "octavo/ops/accumulate.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

/// What all trips of a flow know.
struct UnitsPlan {
  Interval units;  // of this rank, of those of all ranks of the axis
  int num_steps;
  std::vector<ForeignRows> foreign;  // that this rank uses or stores
};

class UnitsTrip final : public StoreTrip {
 public:
  UnitsTrip(ParamStore& store, Communicator& fold, int block, const UnitsPlan& plan, Direction direction)
      : StoreTrip(store, block), fold_(fold), plan_(plan), direction_(direction), panels_(layout().panels.size()) {
    fetch();
  }

  int num_steps() const override { return plan_.num_steps; }

  at::Tensor panel(int step, int panel) override {
    for (Pending& pending : arriving_) pending.wait();
    arriving_.clear();
    const Panel& own = panels_[panel];
    return own.fetched.defined() ? of_step(own.fetched, step, panel) : stored(store().weight(slab(panel)), step, panel);
  }

  void step_done(int) override {}

  void finish() override {
    arriving_.clear();
    lent_.clear();
    if (direction_ == Direction::Backward) send_back();
    panels_.clear();
  }

 protected:
  Interval part_of(int step) const override {
    const Interval part = even_part(plan_.units.size(), plan_.num_steps, step);
    return {plan_.units.begin + part.begin, plan_.units.begin + part.end};
  }

  at::Tensor gradient(int step, int panel) override {
    if (!panels_[panel].fetched.defined()) return stored(store().gradient(slab(panel)), step, panel);
    return of_step(fetched_gradient(panel), step, panel);
  }

 private:
  /// A panel of which other ranks store rows that are used here: all rows of this rank's units. Else without tensors.
  struct Panel {
    at::Tensor fetched, gradient;
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

  at::Tensor& fetched_gradient(int panel) {
    Panel& own = panels_[panel];
    if (!own.gradient.defined()) {
      const CategoryScope scope(MemoryCategory::Communication);
      own.gradient = at::zeros(own.fetched.sizes(), store().gradients().options());
    }
    return own.gradient;
  }

  void fetch() {
    const CategoryScope scope(MemoryCategory::Communication);
    for (const ForeignRows& each : plan_.foreign) {
      const at::Tensor weights = store().weight(slab(each.panel));
      if (each.owner == fold_.index()) {
        lent_.push_back(fold_.send(rows_from(weights, kept(each.panel).begin, each.rows), each.user, Purpose::Weights));
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
  void send_back() {
    const CategoryScope scope(MemoryCategory::Communication);
    std::vector<Pending> pending;
    std::vector<std::pair<at::Tensor, at::Tensor>> received;  // and where it is added
    for (const ForeignRows& each : plan_.foreign) {
      if (each.user == fold_.index()) {
        const at::Tensor rows = rows_from(fetched_gradient(each.panel), used(each.panel).begin, each.rows);
        pending.push_back(fold_.send(rows, each.owner, Purpose::Gradients));
      } else {
        const at::Tensor target = rows_from(store().gradient(slab(each.panel)), kept(each.panel).begin, each.rows);
        received.emplace_back(at::empty_like(target), target);
        pending.push_back(fold_.recv(received.back().first, each.user, Purpose::Gradients));
      }
    }
    for (int panel = 0; panel < static_cast<int>(panels_.size()); ++panel) {
      if (!panels_[panel].gradient.defined()) continue;
      const Interval own = intersection(used(panel), kept(panel));
      ops::accumulate_(rows_from(store().gradient(slab(panel)), kept(panel).begin, own),
                       rows_from(panels_[panel].gradient, used(panel).begin, own));
    }
    for (Pending& each : pending) each.wait();
    for (const auto& [rows, target] : received) ops::accumulate_(target, rows);
  }

  Communicator& fold_;
  const UnitsPlan& plan_;
  const Direction direction_;
  std::vector<Panel> panels_;
  std::vector<Pending> arriving_, lent_;
};

class UnitsFlow final : public Flow {
 public:
  UnitsFlow(ParamStore& store, Communicator& fold, int block, int num_steps)
      : store_(store), fold_(fold), block_(block) {
    const BlockLayout& layout = store.table().blocks()[block];
    const BlockShare& share = store.placement().shares[block];
    plan_.units = fold_units(layout, share, fold.size())[fold.index()];
    plan_.num_steps = static_cast<int>(std::min<std::int64_t>(num_steps, plan_.units.size()));
    plan_.foreign = foreign_rows(layout, share, fold.size());
    std::erase_if(plan_.foreign,
                  [&](const ForeignRows& rows) { return rows.user != fold.index() && rows.owner != fold.index(); });
  }

  int num_steps() const override { return plan_.num_steps; }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<UnitsTrip>(store_, fold_, block_, plan_, direction);
  }

 private:
  ParamStore& store_;
  Communicator& fold_;
  int block_;
  UnitsPlan plan_;
};

}  // namespace

std::unique_ptr<Flow> make_units_flow(ParamStore& store, Communicator& fold, int block, int num_steps) {
  return std::make_unique<UnitsFlow>(store, fold, block, num_steps);
}

}  // namespace octavo
