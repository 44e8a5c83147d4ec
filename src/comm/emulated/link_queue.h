// One rank's place on the link: who sends when. Arithmetic alone; see octavo/comm/emulated_world.h for the model.
#pragma once

#include <cstdint>
#include <deque>

#include "octavo/base/units.h"

namespace octavo {

/// Times on one clock, any origin.
class LinkQueue {
 public:
  using Number = std::int64_t;

  /// A transfer joins at the end. `duration` >= 0: how long it occupies the queue.
  Number add(Seconds posted, Seconds duration);

  /// The transfer was matched then; fixes its place and returns when it has left the queue. Once per transfer.
  Seconds settle(Number number, Seconds matched);

 private:
  struct Slot {
    Seconds ready;  // matched, or posted as long as that is all one knows
    Seconds duration;
    Seconds begin;
    bool settled;

    Seconds end() const { return begin + duration; }
  };

  Seconds free_from(Seconds begin, Seconds duration) const;

  std::deque<Slot> slots_;  // in the order of posting, from the first that is not settled
  Number first_ = 0;        // number of slots_[0]
  Seconds free_ = 0;        // the transfers before slots_[0] are off the queue
};

}  // namespace octavo
