#include "parallel/fold/ring_flow.h"

#include <ATen/ATen.h>

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/comm/without_memory.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "octavo/ops/accumulate.h"
#include "parallel/store_trip.h"

namespace octavo {
namespace {

class RingTrip final : public StoreTrip {
 public:
  RingTrip(ParamStore& store, int block, Direction direction, RingShared& shared)
      : StoreTrip(store, block), direction_(direction), shared_(shared), panels_(layout().panels.size()) {}

  int num_steps() const override { return shared_.fold.size(); }
  int step_at(int place) const override { return direction_ == Direction::Forward ? place : (place + 1) % num_steps(); }

  void fetch_more(Half half) override {
    if (!shared_.overlap) return;
    int& num_fetched = num_fetched_[index(half)];
    // The own part takes no leave, and gives none when it is done.
    if (reads_weights() && num_fetched < num_steps() && step_at(num_fetched) == 0) fetch(half);
    if (num_fetched == num_steps() || !reads_weights()) {
      let_next_fetch(half);
    } else {
      fetch(half);
    }
  }

  at::Tensor panel(int step, int panel) override {
    const Half half = layout().panels[panel].half;
    if (num_fetched_[index(half)] == place_of(step)) fetch(half);
    const TravellingRows& rows = *panels_[panel].fetched.at(place_of(step) - num_done_[index(half)]);
    shared_.line.arrive(rows);
    return rows.rows;
  }

  void half_done(int step, Half half) override {
    const int place = num_done_[index(half)]++;
    internal_check(step == step_at(place), "[parallel] a step is done out of order");
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half != half || !reads_weights()) continue;
      used_.push_back(std::move(panels_[panel].fetched.front()));
      panels_[panel].fetched.pop_front();
    }
    // Weights first: they are needed sooner than gradients.
    let_go();
    if (reads_weights() && step != 0) fetch_more(half);
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half == half && direction_ == Direction::Backward) pass_on(place, panel);
    }
    // Readers that had the rows stored here for an earlier step are done with them, or soon will be.
    await_readers([&](const Lent& lent) { return lent.half == half && lent.place < place; });
  }

  bool is_returning() const override { return num_returned_ > 0; }
  void finish() override {
    shared_.returns->finish(num_returned_);
    await_readers([](const Lent&) { return true; });
  }

 protected:
  Interval part_of(int step) const override { return units_of_fold_step(share(), num_steps(), owner(step)); }

  GradientTerms gradient(int step, int panel) override {
    if (place_of(step) >= num_places_begun_) {
      shared_.returns->begin_step();
      num_returned_ = shared_.returns->num_steps();
      num_places_begun_ = place_of(step) + 1;
    }
    Panel& mine = panels_[panel];
    if (mine.sum.defined()) return {mine.sum, /*is_empty=*/false};
    if (step == 0) {
      mine.sum = store().gradient(slab(panel));
      return {mine.sum, /*is_empty=*/false};
    }
    // What arrives takes memory here unless ranks share theirs, so the sum sent last has to be gone.
    if (!shared_.back.shares_memory()) shared_.returns->finish_message(mine.sent);
    const CategoryScope scope(MemoryCategory::Communication);
    mine.sum = at::empty(sizes(step, panel), store().gradients().options());
    return {mine.sum, /*is_empty=*/true};
  }

 private:
  struct Panel {
    std::deque<std::shared_ptr<TravellingRows>> fetched;  // of steps that are not done; shared with the line
    std::shared_ptr<TravellingRows> latest;               // the last of another rank's that was fetched
    at::Tensor sum;                                       // gradient of the step in use
    at::Tensor coming_sum;                                // what the rank before has added up of the next step's
    Pending coming;
    std::int64_t sent = 0;  // the message that its gradient left with last
  };
  /// Rows stored here that a reader fetches when this rank fetches the step at `place`.
  struct Lent {
    Half half;
    int place;
    std::shared_ptr<TravellingRows> rows;
  };

  int num_panels() const { return static_cast<int>(panels_.size()); }
  static int index(Half half) { return static_cast<int>(half); }
  int owner(int step) const { return (shared_.fold.index() + step) % num_steps(); }
  int next_rank() const { return owner(1); }
  int previous_rank() const { return owner(num_steps() - 1); }
  int place_of(int step) const {
    return direction_ == Direction::Forward ? step : (step + num_steps() - 1) % num_steps();
  }
  /// The embedding's backward does not.
  bool reads_weights() const { return layout().kind != BlockKind::Embedding || direction_ == Direction::Forward; }

  std::array<std::int64_t, 2> sizes(int step, int panel) const {
    return {rows_of(step, panel).size(), layout().panels[panel].width};
  }

  /// Starts to bring the rows of a half of the next step that was not fetched, and lends what a reader borrows by the
  /// same call: round the ring the rows of the step before this one, else those stored here.
  void fetch(Half half) {
    const int place = num_fetched_[index(half)]++, step = step_at(place);
    const bool direct = shared_.direct, lends_own = direct || step == 1;
    for (int panel = 0; panel < num_panels(); ++panel) {
      if (layout().panels[panel].half != half) continue;
      Panel& mine = panels_[panel];
      if (step == 0) {
        mine.fetched.push_back(stored(panel));
        continue;
      }
      const auto rows =
          shared_.line.borrow(sizes(step, panel), store().weights().options(), direct ? owner(step) : next_rank());
      rows->goes_on = !direct && step < num_steps() - 1;
      const auto lent = lends_own ? stored(panel) : mine.latest;
      shared_.line.lend(lent, direct ? owner(num_steps() - step) : previous_rank());
      if (lends_own) lent_.push_back({half, place, lent});
      mine.latest = rows;
      mine.fetched.push_back(rows);
    }
    let_go();
  }

  std::shared_ptr<TravellingRows> stored(int panel) const {
    auto rows = std::make_shared<TravellingRows>();
    rows->rows = store().weight(slab(panel));
    rows->is_here = true;
    return rows;
  }

  /// Frees the rows of steps that are done, once those that go on have got there.
  void let_go() {
    std::erase_if(used_, [](const std::shared_ptr<TravellingRows>& rows) {
      if (rows->goes_on && !rows->is_lent) return false;
      rows->lent.wait();
      rows->arriving = {};
      return true;
    });
  }

  /// Waits until those that `which` names of the readers of rows stored here have let them go.
  template <class Which>
  void await_readers(const Which& which) {
    std::erase_if(lent_, [&](Lent& lent) {
      if (!which(lent) || !lent.rows->is_lent) return false;
      lent.rows->lent.wait();
      return true;
    });
  }

  /// The gradient of a step has its last term of this rank.
  void pass_on(int place, int panel) {
    Panel& mine = panels_[panel];
    const at::Tensor sum = std::exchange(mine.sum, at::Tensor());
    if (place > 0) {
      mine.coming.wait();
      ops::accumulate_(sum, mine.coming_sum);
      mine.coming = {};
    }
    if (place == num_steps() - 1) return;
    mine.sent = shared_.returns->pass_on(shared_.back, sum, previous_rank());
    mine.coming_sum = without_memory(sizes(step_at(place + 1), panel), sum.options());
    mine.coming = shared_.back.borrow(mine.coming_sum, next_rank(), Purpose::Gradients);
    if (!shared_.overlap) mine.coming.wait();
  }

  const Direction direction_;
  RingShared& shared_;
  std::array<int, 2> num_fetched_ = {0, 0}, num_done_ = {0, 0};  // places, by half
  int num_places_begun_ = 0;                                     // whose gradients were added up or are
  std::int64_t num_returned_ = 0;  // steps that the returns have seen with the last of this trip's
  std::vector<Lent> lent_;
  std::vector<std::shared_ptr<TravellingRows>> used_;  // of steps that are done
  std::vector<Panel> panels_;                          // last: what it holds goes before this waits for readers
};

class RingFlow final : public Flow {
 public:
  RingFlow(ParamStore& store, int block, std::shared_ptr<RingShared> shared)
      : store_(store), block_(block), shared_(std::move(shared)) {}
  int num_steps() const override { return shared_->fold.size(); }
  std::unique_ptr<WeightTrip> begin(Direction direction, int) override {
    return std::make_unique<RingTrip>(store_, block_, direction, *shared_);
  }

 private:
  ParamStore& store_;
  const int block_;
  const std::shared_ptr<RingShared> shared_;  // with the other blocks' flows
};

}  // namespace

RingShared::RingShared(RankGroups& groups, bool overlaps, std::shared_ptr<GradientReturns> gradient_returns)
    : fold(*groups.fold),
      back(*groups.fold_back),
      overlap(overlaps),
      direct(groups.layout.fold_route == FoldRoute::Direct || groups.fold->shares_memory()),
      line(*groups.fold),
      returns(std::move(gradient_returns)) {}

std::unique_ptr<Flow> make_ring_flow(ParamStore& store, int block, std::shared_ptr<RingShared> shared) {
  return std::make_unique<RingFlow>(store, block, std::move(shared));
}

}  // namespace octavo
