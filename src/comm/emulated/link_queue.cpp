#include "comm/emulated/link_queue.h"

#include <algorithm>

namespace octavo {

LinkQueue::Number LinkQueue::add(Seconds posted, Seconds duration) {
  slots_.push_back({.ready = posted, .duration = duration, .begin = posted, .settled = false});
  return first_ + static_cast<Number>(slots_.size()) - 1;
}

Seconds LinkQueue::settle(Number number, Seconds matched) {
  Slot& mine = slots_[number - first_];
  mine.ready = std::max(mine.ready, matched);
  Seconds free = free_;
  for (Number each = first_; each <= number; ++each) {
    Slot& slot = slots_[each - first_];
    if (!slot.settled) slot.begin = free_from(std::max(free, slot.ready), slot.duration);
    free = std::max(free, slot.end());
  }
  mine.settled = true;
  const Seconds end = mine.end();
  for (; !slots_.empty() && slots_.front().settled; slots_.pop_front(), ++first_) {
    free_ = std::max(free_, slots_.front().end());
  }
  return end;
}

/// The first moment from `begin` on at which nothing that is settled is in the way for `duration`.
Seconds LinkQueue::free_from(Seconds begin, Seconds duration) const {
  const auto in_the_way = [&](const Slot& slot) {
    return slot.settled && begin < slot.end() && slot.begin < begin + duration;
  };
  while (true) {
    const auto blocker = std::find_if(slots_.begin(), slots_.end(), in_the_way);
    if (blocker == slots_.end()) return begin;
    begin = blocker->end();
  }
}

}  // namespace octavo
