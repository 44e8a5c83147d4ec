// What the members of one group share: their lanes, the group's first failure, and who is touching whose memory.
//
// How memory stays safe when ranks fail. A member may leave an operation that is not complete (it threw, or its
// deadline passed), and its tensors may be freed at once. So:
//   - before a member touches a peer's memory it raises its flag (Access), then looks at the poison, and goes ahead
//     only if that is clean; it lowers the flag afterwards;
//   - before a member leaves an operation that is not complete it sees to it that the poison is set, then waits until
//     every flag has been down once (await_quiet).
// Flags and poison are sequentially consistent. So either the toucher sees the poison, or the leaver sees the flag.
// The leaver waits for the copy of a part at most, never for a peer to call anything.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/threads/lane.h"
#include "comm/threads/poison.h"

namespace octavo {

class SharedGroup {
 public:
  /// `ranks`: numbers in the world of the members, by index.
  SharedGroup(std::string name, std::vector<int> ranks);

  const std::string& name() const { return name_; }
  const std::vector<int>& ranks() const { return ranks_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// Where all members meet, by index.
  Lane& everyone() { return everyone_; }
  /// Where sends of member `source` (participant 0) meet receives of member `target` (participant 1).
  Lane& pair(int source, int target);

  Poison& poison() { return poison_; }

  /// The right of member `index` to touch its peers' memory, for one scope. False on a poisoned group.
  class Access {
   public:
    Access(SharedGroup& group, int index);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;
    explicit operator bool() const { return allowed_; }

   private:
    std::atomic<bool>& flag_;
    bool allowed_;
  };

  /// Returns when no member touches a peer's memory any more. Only on a poisoned group, outside any Access.
  void await_quiet() const;

 private:
  struct alignas(64) Flag {
    std::atomic<bool> raised{false};
  };

  std::string name_;
  std::vector<int> ranks_;
  Lane everyone_;
  Poison poison_;
  std::vector<Flag> flags_;  // by index
  std::mutex pairs_mutex_;
  std::map<std::pair<int, int>, std::unique_ptr<Lane>> pairs_;
};

}  // namespace octavo
