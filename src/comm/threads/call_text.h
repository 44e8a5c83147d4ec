// A call in words, and whether two ranks' calls belong together.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "comm/threads/lane.h"

namespace octavo {

/// "all_reduce of 1000 float32 for gradients", "broadcast of 8 int64 for weights with root 3". `ranks`: numbers in the
/// world of the group's members, by index.
std::string call_text(const RawCall& call, std::span<const int> ranks);

/// Which call of which group.
struct CallName {
  const RawCall& call;
  std::uint64_t number;
  const std::string& group;
  int peer;  // in the world: the other end of a send or recv
  std::optional<std::int64_t> step;
};
/// "all_reduce #5 over data at step 3", "send #2 over pipeline to rank 3".
std::string call_name(const CallName& name);

/// Whether the calls are of one operation. A send fits a receive, a lend a borrow.
bool calls_match(const RawCall& a, const RawCall& b);

bool is_point_to_point(Collective kind);

/// What a rank is told whose call differs from a peer's.
struct CallMismatch {
  int rank;  // in the world: who is told
  std::uint64_t number;
  const std::string& group;
  const RawCall& here;
  const RawCall& there;
  int other;  // rank in the world that made the other call
};
std::string mismatch_text(const CallMismatch& mismatch, std::span<const int> ranks);

}  // namespace octavo
