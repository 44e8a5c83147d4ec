// Shards of weights on their way to a rank and, round a ring, on from it.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>

#include "octavo/comm/communicator.h"

namespace octavo {

/// Rows of one panel that a rank uses in one step.
struct TravellingRows {
  at::Tensor rows;       // [rows, width]; without memory before they are here
  Pending arriving;      // of rows that another rank stores: holds their memory
  bool is_here = false;  // may be read
  bool goes_on = false;  // must be lent before they are let go
  bool is_lent = false;  // to the next rank
  Pending lent;          // until that has them
};

/// What one rank borrows from others and lends to them, over all its trips. Two ranks match the messages between them
/// by their order, but what goes round can be lent only once it is here; so everything arrives in the order in which it
/// was asked for, and is lent in the order in which the readers, who make the same calls, ask for it.
class ShardLine {
 public:
  explicit ShardLine(Communicator& fold) : fold_(fold) {}

  /// Asks member `source` for rows. Returns at once. Shared: they may be lent on while they are in use.
  std::shared_ptr<TravellingRows> borrow(at::IntArrayRef sizes, const at::TensorOptions& options, int source);
  /// Lends the rows to member `reader` as soon as they are here and all earlier ones are lent.
  void lend(std::shared_ptr<TravellingRows> rows, int reader);
  /// Returns when the rows are here, and with them all that were asked for before.
  void arrive(const TravellingRows& rows);

 private:
  struct Lending {
    std::shared_ptr<TravellingRows> rows;
    int reader;
  };

  void lend_what_is_here();

  Communicator& fold_;
  std::deque<std::shared_ptr<TravellingRows>> coming_;  // in the order of asking
  std::deque<Lending> to_lend_;
};

}  // namespace octavo
