// One rank's side of the world: its operations in flight and the loop that brings them all forward.
//
// There are no helper threads. A rank works whenever it posts or waits, and then on everything it has in flight, in the
// order of posting. So ranks may wait for their operations in different orders without a deadlock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/threads/operation.h"
#include "comm/threads/shared_world.h"
#include "octavo/mesh/rank_group.h"
#include "octavo/trace/flight_recorder.h"
#include "octavo/trace/ledger.h"

namespace octavo {

class ThreadGroup;

/// Belongs to one thread. Must outlive the ThreadGroups and ThreadPendings made from it.
class ThreadRank {
 public:
  ThreadRank(SharedWorld& world, int rank) : world_(world), rank_(rank) {}
  ThreadRank(const ThreadRank&) = delete;
  ThreadRank& operator=(const ThreadRank&) = delete;

  int rank() const { return rank_; }
  int size() const { return world_.size(); }
  Ledger& ledger() { return ledger_; }
  FlightRecorder& recorder() { return world_.recorder(rank_); }

  /// As World::split().
  std::unique_ptr<ThreadGroup> split(const RankGroup& group);

 private:
  friend class ThreadGroup;
  friend class ThreadPending;

  Operation& new_operation();
  void post(Operation& operation);
  /// Until the operation is complete. On failure the group is poisoned and quiet when this throws.
  TransferTimes wait(Operation& operation);
  /// Gives the operation back. It must be complete, or its group poisoned and quiet.
  void release(Operation& operation);
  /// Poisons the operation's group because this rank is leaving it with an exception.
  void poison_unwinding(Operation& operation);

  void wait_until_complete(Operation& operation);
  bool progress();
  void check_deadline(const Operation& operation, Seconds begin);
  void check_departed(const Operation& operation);
  TransferTimes book_times(Operation& operation, Seconds waited);
  [[noreturn]] void throw_failure(const Operation& operation) const;

  SharedWorld& world_;
  const int rank_;
  int num_splits_ = 0;
  Ledger ledger_;
  std::vector<Operation*> in_flight_;               // in the order of posting
  std::vector<Operation*> free_;                    // to be used again
  std::vector<std::unique_ptr<Operation>> memory_;  // of all operations
};

}  // namespace octavo
