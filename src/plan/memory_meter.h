// Live bytes by part, and what they were when there were most.
#pragma once

#include <array>

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
