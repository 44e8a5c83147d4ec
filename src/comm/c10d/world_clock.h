// One clock for the ranks of a job: that of rank 0, counted from when it started.
#pragma once

#include <span>

#include "comm/c10d/key_store.h"
#include "octavo/base/units.h"

namespace octavo {

/// A question to rank 0 and its answer.
struct ClockProbe {
  Seconds sent;      // on this rank's clock
  Seconds answered;  // on rank 0's clock
  Seconds received;  // on this rank's clock
};

/// What must be added to this rank's clock: from the probe with the shortest way, whose answer is taken to have been
/// given half way. Wrong by half that way at most. Throws InternalError without probes.
Seconds clock_offset(std::span<const ClockProbe> probes);

class WorldClock {
 public:
  /// Collective over the job. Ranks on rank 0's machine read the same clock; the others ask rank 0 a few times.
  /// Throws CommError if a rank does not answer before the deadline.
  WorldClock(KeyStore& store, int rank, int num_ranks, std::chrono::milliseconds deadline);
  Seconds now() const;

 private:
  Seconds offset_ = 0;
};

}  // namespace octavo
