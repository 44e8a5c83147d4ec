// A collective in flight, as a value that one cannot lose.
#pragma once

#include <cstdint>
#include <memory>

#include "octavo/trace/flight_recorder.h"
#include "octavo/trace/ledger.h"

namespace octavo {

/// What a backend keeps about one operation in flight: its tensors, and how to finish it.
class PendingState {
 public:
  virtual ~PendingState() = default;
  /// Returns when the operation is complete on this rank and nobody reads its tensors any more. Throws CommError
  /// after the deadline or when the group is poisoned. Called at most once. Returns what the ledger was told.
  virtual TransferTimes wait() = 0;
  /// The same for a destructor: swallows the error (the group stays failed, its next call throws) and returns at
  /// once on a poisoned group unless a peer still reads this rank's memory. Whether the operation was carried out.
  virtual bool abandon() noexcept = 0;
  /// Whether what wait() gave lasts only as long as this: borrowed memory.
  virtual bool holds_memory() const { return false; }
};

/// Move-only. Keeps the tensors of the operation alive; waits in its destructor. An exception that unwinds this rank
/// past an operation in flight fails the operation's group instead, so that its peers do not wait for calls that never
/// come.
class [[nodiscard]] Pending {
 public:
  Pending() = default;  // nothing in flight: wait() returns at once
  explicit Pending(std::unique_ptr<PendingState> state);
  /// Tells `recorder` when the operation with that number is done. The recorder must outlive this.
  void recorded_as(FlightRecorder& recorder, std::int64_t number);
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();

  /// Blocks until the operation is done, and says when that was: all zero if nothing moved. Throws CommError. A second
  /// call returns at once.
  TransferTimes wait();

  /// Whether memory is borrowed through this: from wait() until this is destroyed or assigned to.
  bool holds_memory() const { return state_ && waited_; }

 private:
  void abandon() noexcept;
  void record_done();

  std::unique_ptr<PendingState> state_;
  bool waited_ = false;  // what state_ still holds is memory
  FlightRecorder* recorder_ = nullptr;
  std::int64_t number_ = 0;
};

}  // namespace octavo
