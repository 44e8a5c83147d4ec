#include "comm/threads/direct_transfer.h"

#include "octavo/trace/cost.h"

namespace octavo {

Transfer direct_transfer(const RawCall& call, int index, int num_ranks) {
  const bool in_parts =
      call.kind == Collective::ReduceScatter || call.kind == Collective::AllGather || call.kind == Collective::AllToAll;
  const bool has_peer = call.kind == Collective::Broadcast || call.kind == Collective::Reduce ||
                        call.kind == Collective::Send || call.kind == Collective::Receive;
  const std::int64_t num_elements = in_parts ? call.count * num_ranks : call.count;
  const Bytes width = wire_bytes(call.type);
  return {.group = 0,
          .purpose = call.purpose,
          .kind = call.kind,
          .logical = collective_cost(call.kind, Algorithm::Direct, num_ranks, num_elements * width).sent,
          .copied = direct_copied_bytes({.kind = call.kind,
                                         .num_ranks = num_ranks,
                                         .index = index,
                                         .root = call.peer,
                                         .num_elements = num_elements,
                                         .element_bytes = width,
                                         .lends = call.lends}),
          .peer = has_peer ? std::optional<int>(call.peer) : std::nullopt,
          .posted = 0};
}

}  // namespace octavo
