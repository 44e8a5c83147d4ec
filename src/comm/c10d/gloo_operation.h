// One operation in flight on one rank of a gloo group, and the thread that finishes such operations in order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/c10d/exchange_plan.h"
#include "comm/c10d/peer_links.h"
#include "octavo/trace/ledger.h"

namespace octavo {

/// When an operation was posted and, later, how its wait went: kept until World::exchange_times() has told who posted
/// last.
struct TransferRecord {
  Ledger::Ticket ticket{};
  Seconds posted = 0;
  Seconds matched = 0;  // zero: not known yet
  std::optional<TransferTimes> times;
};

struct GlooOperation {
  RawCall call;
  ExchangePlan plan;
  std::byte* scratch = nullptr;
  std::vector<std::byte> tokens;  // scratch of a barrier
  std::uint64_t number = 0;       // in the lane, from 1
  std::optional<std::int64_t> step;
  std::shared_ptr<TransferRecord> record;  // shared with the group's log; null: not booked
  Seconds done = 0;

  struct Started {
    int peer;
    std::unique_ptr<Flight> flight;
  };
  std::vector<std::vector<Started>> sends;     // by phase
  std::vector<std::vector<Started>> receives;  // by phase
  std::vector<int> send_slots;                 // by peer: the number of its next message

  std::atomic<int> waits_for{-1};  // index of the peer that the helper waits for now; -1: for none
  // Guarded by the lane:
  bool settled = false;   // nobody touches its memory any more
  bool complete = false;  // and the result is there
};

/// Operations in the order of posting, finished one after another on a thread of its own. Sends and receives have lanes
/// apart from the collectives', one for each peer and direction: they may be waited for in any order.
class GlooLane {
 public:
  /// `carry_out` finishes an operation and returns whether it is complete. It throws nothing.
  explicit GlooLane(std::function<bool(GlooOperation&)> carry_out);
  ~GlooLane();  // when all operations are settled

  // Shared: the rank may leave an operation that the lane still holds.
  void push(std::shared_ptr<GlooOperation> operation);
  /// Whether it is settled after at most `patience`.
  bool await_settled(const GlooOperation& operation, std::chrono::nanoseconds patience);
  bool is_complete(const GlooOperation& operation);
  /// Index of the peer that keeps the lane waiting; -1 if none does now.
  int waits_for();

  std::uint64_t num_posted = 0;  // for the rank's thread

 private:
  void loop();

  const std::function<bool(GlooOperation&)> carry_out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<GlooOperation>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
