// One rank's membership in a group: what a communicator calls, on raw memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "comm/threads/operation.h"
#include "comm/threads/thread_rank.h"

namespace octavo {

/// An operation in flight. Move-only; waits in its destructor. Its memory must stay valid until then.
class [[nodiscard]] ThreadPending {
 public:
  ThreadPending(ThreadRank& rank, Operation& operation);
  ThreadPending(ThreadPending&& other) noexcept;
  ThreadPending& operator=(ThreadPending&&) = delete;
  ~ThreadPending() { abandon(); }

  /// Throws CommError after the deadline or on a poisoned group, UsageError if the ranks' calls differ. When it throws,
  /// no peer touches this rank's memory any more. A second call returns at once.
  TransferTimes wait();
  /// The same without an error: the group stays poisoned and throws at its next call. If an exception is unwinding this
  /// rank, the group is poisoned instead of waited for: the rank's next calls will not come.
  /// Whether the operation was carried out.
  bool abandon() noexcept;

 private:
  ThreadRank* rank_;
  Operation* operation_;  // null once released
  int exceptions_at_post_;
};

class ThreadGroup {
 public:
  ThreadGroup(ThreadRank& rank, SharedGroup& shared, int index);

  int index() const { return index_; }
  int size() const { return shared_.size(); }
  const std::string& name() const { return shared_.name(); }

  /// Posts a call, books it, and returns at once. Memory as communicator.h says for `call.kind`; `in` and `out` are the
  /// same for all_reduce, broadcast and reduce. Throws CommError or UsageError if the group failed before.
  ThreadPending post(const RawCall& call);

 private:
  struct Endpoint {
    Lane* lane;
    std::uint64_t num_posted;
  };

  Endpoint& endpoint(const RawCall& call);
  void book(Operation& operation);

  ThreadRank& rank_;
  SharedGroup& shared_;
  const int index_;
  int ledger_group_ = 0;
  Endpoint everyone_;
  std::map<std::pair<Collective, int>, Endpoint> pairs_;  // by direction and peer
};

}  // namespace octavo
