// One rank's membership in a group: what a communicator calls, on raw memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/threads/operation.h"
#include "comm/threads/thread_rank.h"

namespace octavo {

/// An operation in flight. Move-only; waits in its destructor. Its memory must stay valid until then. A reader of lent
/// memory holds it from wait() until this is destroyed.
class [[nodiscard]] ThreadPending {
 public:
  ThreadPending(ThreadRank& rank, Operation& operation);
  ThreadPending(ThreadPending&& other) noexcept;
  ThreadPending& operator=(ThreadPending&&) = delete;
  ~ThreadPending() { abandon(); }

  /// Throws CommError after the deadline or on a poisoned group, UsageError if the ranks' calls differ. When it throws,
  /// no peer touches this rank's memory any more, but for readers of what it lent: these keep it alive. A second call
  /// returns at once.
  TransferTimes wait();
  /// The same without an error: the group stays poisoned and throws at its next call. If an exception is unwinding this
  /// rank, the group is poisoned instead of waited for: the rank's next calls will not come.
  /// Whether the operation was carried out.
  bool abandon() noexcept;

  /// After wait(), on a reader of lent memory: the owner's; it may be read until this is destroyed. Null elsewhere.
  const std::shared_ptr<const void>& borrowed() const { return held_.memory(); }

 private:
  ThreadRank* rank_;
  Operation* operation_;  // null once released
  int exceptions_at_post_;
  HeldLoan held_;
};

class ThreadGroup {
 public:
  ThreadGroup(ThreadRank& rank, SharedGroup& shared, int index);

  int index() const { return index_; }
  int size() const { return shared_.size(); }
  const std::string& name() const { return shared_.name(); }

  /// Posts a call, books it, and returns at once. Memory as communicator.h says for `call.kind`; `in` and `out` are the
  /// same for all_reduce, broadcast and reduce. `lent`: of an owner that lends, what keeps call.in alive; it points
  /// there. Throws CommError or UsageError if the group failed before.
  ThreadPending post(const RawCall& call, std::shared_ptr<const void> lent = nullptr);

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
