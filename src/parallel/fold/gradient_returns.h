// Gradients of steps on their way to the ranks that own the rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "octavo/comm/communicator.h"
#include "octavo/layout/interval.h"

namespace octavo {

/// Rows of a sum that one rank owns.
struct OwnedRows {
  int owner;
  Interval rows;      // of the sum
  at::Tensor target;  // on the owner: the gradient that they are added to; may be the rows of the sum themselves
};

/// All trips of a rank over its fold axis share one, since what is on its way outlives the trip that sent it: while a
/// step's gradients are added up, those of the step before may travel, and no others. So the memory holds two steps'.
class GradientReturns {
 public:
  /// `overlap` false: send() waits. `fold` must outlive this.
  GradientReturns(Communicator& fold, bool overlap) : fold_(fold), overlap_(overlap) {}

  /// A step begins to add up its gradients.
  void begin_step();
  /// Sends sums over the ranks of the step in use: of `sum` [rows, width] every owned part. Collective.
  void send(const at::Tensor& sum, std::vector<OwnedRows> parts);
  /// Lends `sum`, of the step in use, to member `to` of `ring`, which adds it to its own. Which message that is.
  std::int64_t pass_on(Communicator& ring, const at::Tensor& sum, int to);
  /// Steps so far.
  std::int64_t num_steps() const { return num_steps_; }
  /// What was sent by the first `num_steps` steps has arrived.
  void finish(std::int64_t num_steps);
  /// The message and all before it have arrived.
  void finish_message(std::int64_t message);

 private:
  struct Returning {
    std::int64_t step, message;
    at::Tensor sum;
    std::vector<OwnedRows> own;
    std::vector<Pending> pending;
  };

  void arrive(Returning& back);

  Communicator& fold_;
  const bool overlap_;
  std::int64_t num_steps_ = 0, num_messages_ = 0;
  std::deque<Returning> returning_;  // oldest first
};

}  // namespace octavo
