#include "octavo/parallel/fold/weights_flow.h"

#include <ATen/ATen.h>

#include <deque>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "parallel/fold/gradient_returns.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

class WeightsTrip final : public StoreTrip {
 public:
  WeightsTrip(ParamStore& store, Communicator& fold, int block, Direction direction, bool overlap,
              GradientReturns& returns)
      : StoreTrip(store, block),
        fold_(fold),
        direction_(direction),
        overlap_(overlap),
        returns_(returns),
        weights_(layout().panels.size()),
        gradients_(layout().panels.size()) {}

  int num_steps() const override { return num_fold_steps(share(), fold_.size()); }

  void start() override {
    // The embedding's backward reads no weights.
    if (layout().kind == BlockKind::Embedding && direction_ == Direction::Backward) return;
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (weights_[panel].num_fetched == 0) fetch(panel);
    }
  }

  at::Tensor panel(int step, int panel) override {
    PanelRows& rows = weights_[panel];
    if (rows.num_fetched == step) fetch(panel);
    Rows& mine = rows.here.at(step - rows.first());
    for (Pending& pending : mine.arriving) pending.wait();
    mine.arriving.clear();
    if (overlap_) fetch_ahead(panel);
    if (overlap_ && step + 1 == num_steps() && layout().panels[panel].half == Half::Mix) start_next();
    return mine.whole;
  }

  void half_done(int step, Half half) override {
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half != half) continue;
      if (direction_ == Direction::Backward) send_back(step, panel);
      PanelRows& rows = weights_[panel];
      if (rows.here.empty()) continue;
      internal_check(rows.first() == step, "[parallel] a step's weights are done with out of order");
      rows.here.pop_front();
      if (overlap_) fetch_ahead(panel);
    }
  }

  bool is_returning() const override { return num_returned_ > 0; }
  void finish() override { returns_.finish(num_returned_); }

 protected:
  Interval part_of(int step) const override { return units_of_fold_step(share(), fold_.size(), step); }

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
  static constexpr std::size_t kMostSteps = 2;  // whose rows of a panel are here at once: the one in use and the next

  /// A step's rows of a panel.
  struct Rows {
    at::Tensor whole;
    std::vector<Pending> arriving;
  };
  struct PanelRows {
    std::deque<Rows> here;  // of the last steps that were fetched
    int num_fetched = 0;

    int first() const { return num_fetched - static_cast<int>(here.size()); }
  };

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
                        step, body);
  }

  /// Rows of a tensor that lies like the panel's rows here.
  at::Tensor own(const at::Tensor& stored, int panel, Interval rows) const {
    return stored.narrow(0, rows.begin - store().placement().slabs[slab(panel)].rows.begin, rows.size());
  }

  /// Fetches more if there is more, and room for it.
  void fetch_ahead(int panel) {
    const PanelRows& rows = weights_[panel];
    if (rows.num_fetched < num_steps() && rows.here.size() < kMostSteps) fetch(panel);
  }

  /// Starts to bring the next step's rows.
  void fetch(int panel) {
    const CategoryScope scope(MemoryCategory::Communication);
    const int step = weights_[panel].num_fetched++;
    const Interval rows = rows_of(step, panel);
    const at::Tensor stored = store().weight(slab(panel));
    const bool is_own = rows == own_rows(step, panel);
    Rows& fetched = weights_[panel].here.emplace_back();
    fetched.whole = is_own ? own(stored, panel, rows) : at::empty({rows.size(), width(panel)}, stored.options());
    for_each_owner(step, panel, [&](int owner, Interval part) {
      const at::Tensor place = fetched.whole.narrow(0, part.begin - rows.begin, part.size());
      if (owner == fold_.index() && !is_own) place.copy_(own(stored, panel, part));
      fetched.arriving.push_back(fold_.broadcast(place, owner, Purpose::Weights));
    });
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
  const Direction direction_;
  const bool overlap_;
  GradientReturns& returns_;
  std::vector<PanelRows> weights_;     // by panel
  std::vector<at::Tensor> gradients_;  // of the step in use, by panel
  int num_steps_begun_ = 0;            // whose gradients were added up or are
  std::int64_t num_returned_ = 0;      // steps that returns_ has seen with the last of this trip's
};

class WeightsFlow final : public Flow {
 public:
  WeightsFlow(ParamStore& store, Communicator& fold, int block, bool overlap, std::shared_ptr<GradientReturns> returns)
      : store_(store), fold_(fold), block_(block), overlap_(overlap), returns_(std::move(returns)) {}
  int num_steps() const override { return num_fold_steps(store_.placement().shares[block_], fold_.size()); }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<WeightsTrip>(store_, fold_, block_, direction, overlap_, *returns_);
  }

 private:
  ParamStore& store_;
  Communicator& fold_;
  const int block_;
  const bool overlap_;
  const std::shared_ptr<GradientReturns> returns_;
};

}  // namespace

std::vector<std::unique_ptr<Flow>> make_weights_flows(ParamStore& store, Communicator& fold, bool overlap) {
  const auto returns = std::make_shared<GradientReturns>(fold, overlap);
  std::vector<std::unique_ptr<Flow>> flows;
  for (int block = 0; block < static_cast<int>(store.table().blocks().size()); ++block) {
    flows.push_back(std::make_unique<WeightsFlow>(store, fold, block, overlap, returns));
  }
  return flows;
}

}  // namespace octavo
