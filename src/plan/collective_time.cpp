#include "octavo/plan/collective_time.h"

#include <algorithm>
#include <bit>

#include "octavo/base/error.h"

namespace octavo {
namespace {

bool is_reduced(Collective kind) {
  return kind == Collective::AllReduce;
}

bool is_pairwise(Collective kind) {
  return kind == Collective::Send || kind == Collective::Receive || kind == Collective::AllToAll;
}

bool has_tree(Collective kind) {
  return is_reduced(kind) || kind == Collective::Broadcast || kind == Collective::Reduce || kind == Collective::Barrier;
}

/// Rounds through the group: a barrier is an all_reduce of nothing.
int rounds(Collective kind) {
  return is_reduced(kind) || kind == Collective::Barrier ? 2 : 1;
}

}  // namespace

CollectiveTimes::CollectiveTimes(const GroupLinks& links, const FabricTiming& timing)
    : num_ranks_(links.num_ranks),
      num_nodes_(links.num_nodes),
      ranks_per_node_(links.ranks_per_node),
      is_even_(links.is_even),
      has_switch_(timing.switch_share && timing.switch_latency && links.num_nodes == 1 && links.num_ranks > 2),
      call_(timing.call_latency.value),
      inner_(links.node_bandwidth * timing.ring_share.value),
      outer_(links.network_bandwidth * timing.network_share.value),
      tree_share_(timing.tree_share.value),
      switch_step_(has_switch_ ? timing.switch_latency->value : 0),
      switch_rate_(has_switch_ ? timing.switch_share->value * links.node_bandwidth : 0),
      normal_{timing.hop_latency.value, timing.network_hop.value, 1},
      small_{timing.small_hop.value, timing.network_small_hop.value, timing.small_share.value} {
  const double way_out = ranks_per_node_ * outer_;
  stream_ = num_nodes_ == 1 ? inner_ : inner_ > 0 ? std::min(inner_, way_out) : way_out;
  pair_ = links.node_bandwidth * timing.pair_share.value;
  pair_to_one_ = links.pair_bandwidth * timing.pair_share.value;
}

CollectiveTime CollectiveTimes::fastest(Collective kind, Bytes message) const {
  internal_check(message >= 0, "[plan] the time of a collective of negative bytes");
  if (num_ranks_ == 1) return {0, Algorithm::Direct, false};
  const double bytes = static_cast<double>(message);
  if (is_pairwise(kind)) return {direct(kind, bytes), Algorithm::Direct, false};
  CollectiveTime best = {ring(kind, bytes, normal_), Algorithm::Ring, false};
  const auto consider = [&best](Seconds seconds, Algorithm algorithm, bool small) {
    if (seconds < best.seconds) best = {seconds, algorithm, small};
  };
  consider(ring(kind, bytes, small_), Algorithm::Ring, true);
  if (num_nodes_ > 1 && has_tree(kind)) {
    consider(tree(kind, bytes, normal_), Algorithm::Tree, false);
    consider(tree(kind, bytes, small_), Algorithm::Tree, true);
  }
  if (is_reduced(kind)) {
    if (has_switch_) consider(in_switch(bytes), Algorithm::InSwitch, false);
    if (num_nodes_ > 1 && ranks_per_node_ > 1 && is_even_) {
      consider(hierarchical(kind, bytes), Algorithm::Hierarchical, false);
    }
  }
  return best;
}

std::optional<Seconds> CollectiveTimes::by(Algorithm algorithm, Collective kind, Bytes message) const {
  internal_check(message >= 0, "[plan] the time of a collective of negative bytes");
  if (num_ranks_ == 1) return 0;
  const double bytes = static_cast<double>(message);
  switch (algorithm) {
    case Algorithm::Direct:
      if (is_pairwise(kind)) return direct(kind, bytes);
      return std::nullopt;
    case Algorithm::Ring:
      if (!is_pairwise(kind)) return std::min(ring(kind, bytes, normal_), ring(kind, bytes, small_));
      return std::nullopt;
    case Algorithm::Tree:
      if (num_nodes_ > 1 && has_tree(kind)) return std::min(tree(kind, bytes, normal_), tree(kind, bytes, small_));
      return std::nullopt;
    case Algorithm::InSwitch:
      if (has_switch_ && is_reduced(kind)) return in_switch(bytes);
      return std::nullopt;
    case Algorithm::Hierarchical:
      if (num_nodes_ > 1 && ranks_per_node_ > 1 && is_even_ &&
          (is_reduced(kind) || kind == Collective::AllGather || kind == Collective::ReduceScatter)) {
        return hierarchical(kind, bytes);
      }
      return std::nullopt;
  }
  throw InternalError("[plan] the time of an Algorithm outside its enumeration");
}

Seconds CollectiveTimes::ring(Collective kind, double message, const Protocol& protocol) const {
  const int steps = rounds(kind) * (num_ranks_ - 1);
  const int outside = rounds(kind) * (num_nodes_ - 1);
  return call_ + (steps - outside) * protocol.hop + outside * protocol.network_hop +
         bus_factor(kind, num_ranks_) * message / (stream_ * protocol.bandwidth_share);
}

Seconds CollectiveTimes::tree(Collective kind, double message, const Protocol& protocol) const {
  const int levels = std::bit_width(static_cast<unsigned>(num_nodes_ - 1));
  return call_ + rounds(kind) * ((ranks_per_node_ - 1) * protocol.hop + levels * protocol.network_hop) +
         bus_factor(kind, num_ranks_) * message / (tree_share_ * stream_ * protocol.bandwidth_share);
}

Seconds CollectiveTimes::hierarchical(Collective kind, double message) const {
  const double part = message / ranks_per_node_;
  return call_ + rounds(kind) * ((ranks_per_node_ - 1) * normal_.hop + (num_nodes_ - 1) * normal_.network_hop) +
         bus_factor(kind, ranks_per_node_) * message / inner_ + bus_factor(kind, num_nodes_) * part / outer_;
}

Seconds CollectiveTimes::in_switch(double message) const {
  return call_ + 2 * switch_step_ + message * (num_ranks_ + 1) / num_ranks_ / switch_rate_;
}

Seconds CollectiveTimes::direct(Collective kind, double message) const {
  const double hop = num_nodes_ > 1 ? normal_.network_hop : normal_.hop;
  if (kind != Collective::AllToAll) {
    const double rate = num_nodes_ > 1 ? outer_ : pair_to_one_;
    return call_ + hop + message / rate;
  }
  const double part = message / num_ranks_;
  const double inside = ranks_per_node_ > 1 ? part * (ranks_per_node_ - 1) / pair_ : 0;
  const double outside = num_nodes_ > 1 ? part * (num_ranks_ - ranks_per_node_) / outer_ : 0;
  return call_ + hop + std::max(inside, outside);
}

}  // namespace octavo
