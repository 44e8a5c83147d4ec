// Live bytes by part, and what they were when there were most.
#pragma once

#include <array>
#include <cstdint>

#include "octavo/plan/memory_estimate.h"

namespace octavo {

class MemoryMeter {
 public:
  void enter(PeakPlace place) { place_ = place; }
  void take(MemoryPart part, Bytes bytes) {
    by_part_[static_cast<int>(part)] += bytes;
    live_ += bytes;
    if (live_ <= most_) return;
    most_ = live_;
    peak_.by_part = by_part_;
    peak_.place = place_;
  }
  void give(MemoryPart part, Bytes bytes) {
    by_part_[static_cast<int>(part)] -= bytes;
    live_ -= bytes;
  }
  /// Taken and given again.
  void touch(MemoryPart part, Bytes bytes) {
    take(part, bytes);
    give(part, bytes);
  }
  /// What `step` leaves behind, `times` more: for steps that are alike and never the peak.
  template <class Step>
  void repeat(const Step& step, std::int64_t times) {
    const std::array<Bytes, kNumMemoryParts> before = by_part_;
    step();
    for (int i = 0; i < kNumMemoryParts; ++i) {
      const Bytes left = times * (by_part_[i] - before[i]);
      by_part_[i] += left;
      live_ += left;
    }
  }
  Bytes live(MemoryPart part) const { return by_part_[static_cast<int>(part)]; }
  Bytes live() const { return live_; }
  const MemoryEstimate& peak() const { return peak_; }

 private:
  std::array<Bytes, kNumMemoryParts> by_part_{};
  Bytes live_ = 0, most_ = 0;
  PeakPlace place_ = PeakPlace::OptimizerStep;
  MemoryEstimate peak_;
};

}  // namespace octavo
