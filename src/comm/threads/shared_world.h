// What all rank threads of one process share: the groups made so far, who still runs, and who failed first.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/threads/shared_group.h"
#include "octavo/base/units.h"
#include "octavo/mesh/rank_group.h"
#include "octavo/trace/flight_recorder.h"

namespace octavo {

enum class RankState { Running, Returned, Failed };

class SharedWorld {
 public:
  SharedWorld(int num_ranks, Seconds deadline);

  int size() const { return static_cast<int>(states_.size()); }
  Seconds deadline() const { return deadline_; }  // of every wait
  Seconds now() const;                            // since the world began, one clock for all ranks

  /// The group that holds `rank` in the `number`-th split of the world. The first member to come makes it.
  /// Throws UsageError if another rank gave another cut for that number.
  SharedGroup& join(int rank, int number, const RankGroup& group);

  FlightRecorder& recorder(int rank) { return *recorders_[rank]; }
  /// What every rank did last.
  std::string report() const;

  RankState state(int rank) const { return states_[rank].load(std::memory_order_acquire); }
  /// The rank's function has returned: it will post nothing more.
  void leave(int rank);
  /// The rank's function has thrown. Poisons all its groups with `failure`.
  void fail(int rank, const Failure& failure, std::exception_ptr error, bool caused_by_peer);
  /// How a rank failed. Only when state(rank) is Failed.
  Failure failure(int rank) const;

  /// The first error that was not caused by a peer's; else the first of all; null if no rank failed. After all joined.
  std::exception_ptr first_error() const { return first_cause_ ? first_cause_ : first_effect_; }

 private:
  const Seconds deadline_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<std::atomic<RankState>> states_;              // by rank
  std::vector<std::unique_ptr<FlightRecorder>> recorders_;  // by rank

  mutable std::mutex mutex_;  // guards what follows
  std::map<int, std::string> cuts_;
  std::map<std::pair<int, int>, std::unique_ptr<SharedGroup>> groups_;  // by number of the split, first member
  std::map<int, Failure> failures_;                                     // by rank
  std::exception_ptr first_cause_;
  std::exception_ptr first_effect_;
};

}  // namespace octavo
