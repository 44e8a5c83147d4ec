// Keys and values where tokens are cut over ranks: from those of the tokens held here to those of every token that a
// query here may see, and the way back of their gradients. Implemented by parallel/.
// Letters: T tokens held here, S tokens whose keys are seen, U KV heads, D head width.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace octavo {

/// One exchange: of one group of KV heads, for one pass over a micro-batch. Under way from the moment it is made.
class KeyValueExchange {
 public:
  virtual ~KeyValueExchange() = default;
  /// k, v [S, U, D]; waits for them. Valid as long as this lives.
  virtual std::pair<at::Tensor, at::Tensor> gathered() = 0;
  /// Sends the gradients dk, dv [S, U, D] on their way. Returns those of the tokens held here [T, U, D], summed over
  /// the ranks, which have their values once finish() has returned. At most once.
  virtual std::pair<at::Tensor, at::Tensor> send_back(at::Tensor dk, at::Tensor dv) = 0;
  virtual void finish() = 0;
};

/// Points at the exchange of the pass that is under way. Shared by the autograd graph and by the driver that re-points
/// it, as WeightSlot is.
struct KeyValueSlot {
  KeyValueExchange* exchange = nullptr;
};

}  // namespace octavo
