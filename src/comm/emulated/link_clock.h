// The clock that the ranks of a world share, as seen by one rank that is only told when it posted.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "octavo/base/units.h"

namespace octavo {

class LinkClock {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  static Moment moment() { return std::chrono::steady_clock::now(); }

  /// `before` a call, in which the world's clock stood at `posted`. Every call brings the two clocks closer together.
  void observe(Moment before, Seconds posted) { origin_ = std::max(origin_, seconds(before) - posted); }

  /// After the first observe().
  Seconds now() const { return seconds(moment()) - origin_; }

  /// Sleeps for most of the time, since others may need the core, and yields for the rest, since a sleep ends late.
  void sleep_until(Seconds time) const {
    constexpr Seconds kSleepEndsLate = 200e-6;
    for (Seconds left = time - now(); left > 0; left = time - now()) {
      if (left > kSleepEndsLate) {
        std::this_thread::sleep_for(std::chrono::duration<Seconds>(left - kSleepEndsLate));
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  static Seconds seconds(Moment moment) { return std::chrono::duration<Seconds>(moment.time_since_epoch()).count(); }

  Seconds origin_ = -std::numeric_limits<Seconds>::infinity();
};

}  // namespace octavo
