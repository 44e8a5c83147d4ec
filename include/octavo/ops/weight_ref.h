// Weights as something that is resolved when it is used: forward and backward may find the bytes in different places.
// A weight is never an autograd input; its gradient leaves through the trip as a pair of factors (design 2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "octavo/layout/block_layout.h"

namespace octavo {

/// Units [begin, end) of a block, and behind them units of zeros that belong to no parameter.
struct UnitRange {
  std::int64_t begin, end;
  std::int64_t num_padded = 0;

  std::int64_t num_real() const { return end - begin; }
  std::int64_t size() const { return num_real() + num_padded; }
};

/// One pass over the weights of a block, in steps that together cover the units computed here: where the weights are,
/// and where their gradients go. Owns what it has in flight. Implemented by flows.
class WeightTrip {
 public:
  virtual ~WeightTrip() = default;

  /// One more step's weights of this half may travel, whether or not they are used yet: of the first step of this trip
  /// that was not fetched, else of the next trip's. Each half_done() gives one such leave for what it frees, and
  /// start() the first ones, so the weights of two steps at most are in memory. A trip that got none fetches what it
  /// uses.
  virtual void fetch_more(Half half) = 0;
  /// `next` is the trip that will be used after this one. It must outlive the steps of this.
  virtual void then(WeightTrip& next) = 0;
  /// For the first trip of a chain.
  void start() {
    for (int step = 0; step < 2; ++step) {
      fetch_more(Half::Project);
      fetch_more(Half::Mix);
    }
  }

  virtual int num_steps() const = 0;
  /// The step that comes at `place` of [0, num_steps()). On one rank a step has the same units in every trip of a flow,
  /// but they may come in another order.
  virtual int step_at(int place) const { return place; }
  virtual UnitRange units(int step) const = 0;  // may have none
  /// Units of the largest step of any rank that the exchange of the block connects: the same on all of these.
  virtual std::int64_t most_units() const = 0;
  /// Whether the partial sums made with these weights count; if not, another rank makes the same.
  virtual bool counts() const = 0;
  /// This step's rows of panel `panel`: [rows, width], compute dtype. Valid until the step is over.
  virtual at::Tensor panel(int step, int panel) = 0;
  /// The common vector `common`: [size], compute dtype.
  virtual at::Tensor common(int common) = 0;
  /// Adds the product a^T b to the gradient of this step's rows of `panel`: a [T, rows], b [T, width].
  virtual void add_product(int step, int panel, const at::Tensor& a, const at::Tensor& b) = 0;
  /// The rows of panel `panel` for ids [T] (int64, CPU): [T, width], zeros for ids of other units; and the way back,
  /// gradient rows += dx [T, width].
  virtual at::Tensor look_up(int step, int panel, const at::Tensor& ids) = 0;
  virtual void add_rows(int step, int panel, const at::Tensor& ids, const at::Tensor& dx) = 0;
  /// The weights of this half of the step are not read any more, and its gradients have their last term: they may
  /// travel. For each half in the order in which the steps come.
  virtual void half_done(int step, Half half) = 0;
  void step_done(int step) {
    half_done(step, Half::Mix);
    half_done(step, Half::Project);
  }
  /// Whether gradients were sent that finish() waits for: the same on every rank.
  virtual bool is_returning() const = 0;
  /// Whatever travelled has arrived, and peers read no weights of this rank for this trip any more: after the last
  /// step, at once or later. Collective over the axes that the weights travel on.
  virtual void finish() = 0;
  /// Adds `gradient` [size] (sum dtype) to that of the common vector. Of ranks that compute the same inside their units
  /// one counts.
  virtual void add_common(int common, const at::Tensor& gradient) = 0;
};

enum class Direction { Forward, Backward };

/// Where the weights of a block come from, pass after pass. Implemented by parallel/.
class Flow {
 public:
  virtual ~Flow() = default;
  virtual int num_steps() const = 0;  // of every trip
  /// Collective over the axes that the weights travel on. The flow must outlive the trip.
  virtual std::unique_ptr<WeightTrip> begin(Direction direction, int micro_batch) = 0;
};

/// Points at the trip that is under way: at the forward trip first, later at the backward trip. Shared by the autograd
/// graph of a block and by the driver that re-points it, neither of which outlives the other for sure.
struct WeightSlot {
  WeightTrip* trip = nullptr;
};

/// One panel (or common vector) of one step, by name.
struct WeightRef {
  std::shared_ptr<WeightSlot> slot;
  int step = 0;
  int index = 0;

  at::Tensor panel() const { return slot->trip->panel(step, index); }
  at::Tensor common() const { return slot->trip->common(index); }
  void add_product(const at::Tensor& a, const at::Tensor& b) const { slot->trip->add_product(step, index, a, b); }
  void add_common(const at::Tensor& gradient) const { slot->trip->add_common(index, gradient); }
};

/// The weights of one step of a trip.
class WeightRefs {
 public:
  WeightRefs(std::shared_ptr<WeightSlot> slot, int step) : slot_(std::move(slot)), step_(step) {}
  WeightRef operator[](int index) const { return {slot_, step_, index}; }

 private:
  std::shared_ptr<WeightSlot> slot_;
  int step_;
};

}  // namespace octavo
