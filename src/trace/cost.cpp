#include "octavo/trace/cost.h"

#include <algorithm>
#include <bit>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

namespace {

void check_call(Collective kind, int num_ranks, Bytes message) {
  if (num_ranks < 1 || message < 0) {
    throw InternalError(cat("[trace] collective_cost of ", collective_name(kind), ": num_ranks=", num_ranks,
                            ", message=", message, "; needs at least one rank and no negative bytes."));
  }
}

/// part / whole of `message`, rounded to a whole byte.
Bytes share(Bytes message, Bytes part, Bytes whole) {
  return (part * message + whole / 2) / whole;
}

/// Steps of a kind that goes `rounds` times through a group.
CollectiveCost rounds_cost(int rounds, int num_ranks, int steps, Bytes message) {
  return {.sent = share(message, static_cast<Bytes>(rounds) * (num_ranks - 1), num_ranks), .steps = rounds * steps};
}

}  // namespace

std::string_view algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Ring:
      return "ring";
    case Algorithm::Tree:
      return "tree";
    case Algorithm::InSwitch:
      return "in-switch";
    case Algorithm::Hierarchical:
      return "hierarchical";
  }
  throw InternalError("[trace] an Algorithm outside its enumeration has no name");
}

CollectiveCost collective_cost(Collective kind, Algorithm algorithm, int num_ranks, Bytes message) {
  check_call(kind, num_ranks, message);
  if (num_ranks == 1) return {.sent = 0, .steps = 0};
  const bool is_reduced = kind == Collective::AllReduce;
  if (algorithm == Algorithm::InSwitch && is_reduced) {
    return {.sent = share(message, num_ranks + 1, num_ranks), .steps = 2};
  }
  if (algorithm == Algorithm::Tree && (is_reduced || kind == Collective::Broadcast || kind == Collective::Reduce)) {
    return rounds_cost(is_reduced ? 2 : 1, num_ranks, std::bit_width(static_cast<unsigned>(num_ranks - 1)), message);
  }
  if (algorithm != Algorithm::Direct && algorithm != Algorithm::Ring) {
    throw InternalError(cat("[trace] collective_cost: no ", collective_name(kind), " by ", algorithm_name(algorithm)));
  }
  const bool ring = algorithm == Algorithm::Ring;
  const int once_round = ring ? num_ranks - 1 : 1;
  switch (kind) {
    case Collective::AllReduce:
      return rounds_cost(2, num_ranks, once_round, message);
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::AllToAll:
      return rounds_cost(1, num_ranks, once_round, message);
    case Collective::Send:
      return {.sent = message, .steps = 1};
    case Collective::Receive:
      return {.sent = 0, .steps = 1};
    case Collective::Barrier:
      return {.sent = 0, .steps = ring ? 2 * (num_ranks - 1) : 1};
  }
  throw InternalError("[trace] collective_cost: a kind outside the enum.");
}

HierarchicalCost hierarchical_cost(Collective kind, int ranks_per_node, int num_nodes, Bytes message) {
  check_call(kind, std::min(ranks_per_node, num_nodes), message);
  const bool is_reduced = kind == Collective::AllReduce;
  if (!is_reduced && kind != Collective::ReduceScatter && kind != Collective::AllGather) {
    throw InternalError(cat("[trace] hierarchical_cost: no hierarchical ", collective_name(kind)));
  }
  const int rounds = is_reduced ? 2 : 1;
  const Bytes whole = static_cast<Bytes>(num_nodes) * ranks_per_node;
  return {.inside = rounds_cost(rounds, ranks_per_node, ranks_per_node - 1, message),
          .outside = {.sent = share(message, static_cast<Bytes>(rounds) * (num_nodes - 1), whole),
                      .steps = rounds * (num_nodes - 1)}};
}

double bus_factor(Collective kind, int num_ranks) {
  if (num_ranks <= 1) return 0;
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  switch (kind) {
    case Collective::AllReduce:
      return 2 * others;
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::AllToAll:
      return others;
    case Collective::Broadcast:
    case Collective::Reduce:
    case Collective::Send:
    case Collective::Receive:
      return 1;
    case Collective::Barrier:
      return 0;
  }
  throw InternalError("[trace] bus_factor: a kind outside the enum.");
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
