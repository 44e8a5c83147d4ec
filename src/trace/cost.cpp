#include "octavo/trace/cost.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

CollectiveCost collective_cost(Collective kind, Algorithm algorithm, int num_ranks, Bytes message) {
  if (num_ranks < 1 || message < 0) {
    throw InternalError(cat("[trace] collective_cost of ", collective_name(kind), ": num_ranks=", num_ranks,
                            ", message=", message, "; needs at least one rank and no negative bytes."));
  }
  if (num_ranks == 1) return {.sent = 0, .steps = 0};
  const Bytes others = num_ranks - 1;
  const auto mean = [&](Bytes total) { return (total + num_ranks / 2) / num_ranks; };
  const bool ring = algorithm == Algorithm::Ring;
  const int once_round = ring ? num_ranks - 1 : 1;
  switch (kind) {
    case Collective::AllReduce:
      return {.sent = mean(2 * others * message), .steps = 2 * once_round};
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::AllToAll:
      return {.sent = mean(others * message), .steps = once_round};
    case Collective::Send:
      return {.sent = message, .steps = 1};
    case Collective::Receive:
      return {.sent = 0, .steps = 1};
    case Collective::Barrier:
      return {.sent = 0, .steps = ring ? 2 * (num_ranks - 1) : 1};
  }
  throw InternalError("[trace] collective_cost: a kind outside the enum.");
}

Part direct_part(std::int64_t count, int num_ranks, int index) {
  constexpr std::int64_t kStride = 32;
  const std::int64_t even = (count + num_ranks - 1) / num_ranks;
  const std::int64_t part = (even + kStride - 1) / kStride * kStride;
  return {.begin = std::min(count, index * part), .end = std::min(count, (index + 1) * part)};
}

Bytes direct_copied_bytes(const DirectCall& call) {
  if (call.lends) return 0;
  const std::int64_t own_share = call.num_elements / call.num_ranks;
  switch (call.kind) {
    case Collective::AllReduce:
      return (call.num_elements - direct_part(call.num_elements, call.num_ranks, call.index).size()) *
             call.element_bytes;
    case Collective::AllGather:
    case Collective::AllToAll:
      return (call.num_elements - own_share) * call.element_bytes;
    case Collective::Broadcast:
      return call.index == call.root ? 0 : call.num_elements * call.element_bytes;
    case Collective::Receive:
      return call.num_elements * call.element_bytes;
    case Collective::ReduceScatter:
    case Collective::Reduce:
    case Collective::Send:
    case Collective::Barrier:
      return 0;
  }
  throw InternalError("[trace] direct_copied_bytes: a kind outside the enum.");
}

}  // namespace octavo
