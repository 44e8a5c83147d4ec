// How a thread waits for another: hot at first, then politely, since ranks may outnumber cores.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace octavo {

class Backoff {
 public:
  /// Something moved: be quick again.
  void reset() { num_pauses_ = 0; }

  /// Spins, then yields the core, then sleeps for ever longer up to 100 us. True once it is past spinning, when
  /// the caller has time to look at clocks.
  bool pause() {
    constexpr int kSpins = 64, kYields = 2000;  // a pause is 10 to 70 ns, a yield to nobody about 500 ns
    ++num_pauses_;
    if (num_pauses_ <= kSpins) {
      relax();
      return false;
    }
    if (num_pauses_ <= kSpins + kYields) {
      std::this_thread::yield();
    } else {
      constexpr int kMaxMicroseconds = 100;
      const int sleeps = num_pauses_ - kSpins - kYields;
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(kMaxMicroseconds, sleeps)));
      if (sleeps > kMaxMicroseconds) --num_pauses_;  // stay here, do not overflow
    }
    return true;
  }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  int num_pauses_ = 0;
};

}  // namespace octavo
