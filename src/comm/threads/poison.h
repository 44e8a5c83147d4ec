// The first failure of a group: set once, for good.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "octavo/base/error.h"

namespace octavo {

enum class FailureKind {
  RankLost,  // a rank threw, returned early or came too late
  Mismatch,  // ranks called different operations
};

struct Failure {
  int rank;  // in the world: the rank that failed
  FailureKind kind;
  std::string text;  // what happened to it; empty while it is still unwinding
};

/// The failure of a rank that threw an error with this text: its first line, for libtorch goes on with a stack trace.
Failure lost_rank(int rank, const std::string& text);

/// Thrown on a rank because another rank failed. Carries the first failure, so that it survives being passed on.
class PeerFailure : public CommError {
 public:
  PeerFailure(const std::string& message, Failure failure) : CommError(message), failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

class Poison {
 public:
  /// Sequentially consistent, as the protocol that protects memory needs it (shared_group.h).
  bool is_set() const { return set_.load(std::memory_order_seq_cst); }

  /// Keeps the first failure. If that has no text yet, a later one by the same reporter replaces it.
  void set(int reporter, Failure failure) {
    const std::lock_guard lock(mutex_);
    if (!is_set()) {
      reporter_ = reporter;
      failure_ = std::move(failure);
      set_.store(true, std::memory_order_seq_cst);
    } else if (failure_.text.empty() && reporter_ == reporter) {
      failure_ = std::move(failure);
    }
  }

  /// Only when is_set().
  Failure failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  /// The rank (in the world) that set the failure. Only when is_set().
  int reporter() const {
    const std::lock_guard lock(mutex_);
    return reporter_;
  }

 private:
  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;
  Failure failure_{};
  int reporter_ = 0;
};

}  // namespace octavo
