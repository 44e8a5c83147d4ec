#include "comm/threads/transfer.h"

#include <cstring>

#include "comm/threads/sum.h"
#include "octavo/trace/cost.h"

namespace octavo {
namespace {

void copy_bytes(std::byte* out, const std::byte* in, std::int64_t num_bytes) {
  if (num_bytes > 0 && out != in) std::memcpy(out, in, num_bytes);
}

const RawCall& peer_call(const Operation& operation, int participant) {
  return operation.lane->call(participant, operation.number);
}

/// Calls visit(q) for every participant, this rank first, then its neighbours upwards: no two ranks read from the same
/// one at the same time.
template <class Visit>
void for_each_from_here(const Operation& operation, const Visit& visit) {
  const int size = operation.lane->size();
  for (int step = 0; step < size; ++step) visit((operation.participant + step) % size);
}

/// Sums `count` elements that begin `offset` elements into every rank's `in`.
void sum_into(Operation& operation, std::byte* out, std::int64_t offset, std::int64_t count) {
  const std::int64_t begin = offset * wire_bytes(operation.call.type);
  operation.sources.clear();
  for (int rank = 0; rank < operation.lane->size(); ++rank) {
    operation.sources.push_back(peer_call(operation, rank).in + begin);
  }
  sum_over_ranks(operation.call.type, out, operation.sources, count);
}

}  // namespace

void first_phase(Operation& operation) {
  const RawCall& call = operation.call;
  if (call.lends) {
    if (operation.loan) return;  // the owner
    const int owner = call.kind == Collective::Broadcast ? call.peer : 0;
    operation.held = HeldLoan(operation.lane->loan(owner, operation.number), operation.participant);
    return;
  }
  const std::int64_t width = wire_bytes(call.type);
  const std::int64_t num_bytes = call.count * width;
  if (num_bytes == 0) return;
  const int here = operation.participant;
  switch (call.kind) {
    case Collective::AllReduce:
    case Collective::Reduce: {
      const Part part = direct_part(call.count, operation.lane->size(), here);
      if (part.size() == 0) return;
      std::byte* target = call.kind == Collective::Reduce ? peer_call(operation, call.peer).out : call.out;
      sum_into(operation, target + part.begin * width, part.begin, part.size());
      return;
    }
    case Collective::ReduceScatter:
      sum_into(operation, call.out, here * call.count, call.count);
      return;
    case Collective::AllGather:
      for_each_from_here(operation, [&](int rank) {
        copy_bytes(call.out + rank * num_bytes, peer_call(operation, rank).in, num_bytes);
      });
      return;
    case Collective::Broadcast:
      copy_bytes(call.out, peer_call(operation, call.peer).in, num_bytes);
      return;
    case Collective::AllToAll:
      for_each_from_here(operation, [&](int rank) {
        copy_bytes(call.out + rank * num_bytes, peer_call(operation, rank).in + here * num_bytes, num_bytes);
      });
      return;
    case Collective::Receive:
      copy_bytes(call.out, peer_call(operation, 0).in, num_bytes);
      return;
    case Collective::Send:
    case Collective::Barrier:
      return;
  }
}

void second_phase(Operation& operation) {
  const RawCall& call = operation.call;
  const std::int64_t width = wire_bytes(call.type);
  for_each_from_here(operation, [&](int rank) {
    const Part part = direct_part(call.count, operation.lane->size(), rank);
    if (part.size() == 0) return;
    const std::int64_t begin = part.begin * width;
    copy_bytes(call.out + begin, peer_call(operation, rank).out + begin, part.size() * width);
  });
}

bool peers_touch(const Operation& operation) {
  switch (operation.call.kind) {
    case Collective::AllReduce:
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::Reduce:
    case Collective::AllToAll:
    case Collective::Send:
      return true;
    case Collective::Broadcast:
      return operation.participant == operation.call.peer;
    case Collective::Receive:
    case Collective::Barrier:
      return false;
  }
  return true;
}

}  // namespace octavo
