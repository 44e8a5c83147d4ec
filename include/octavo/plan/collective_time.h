// How long a collective takes over given links: latency of its steps, and bytes over what a library reaches of the
// bandwidth. Bytes and steps are those of trace/cost.h, shares and latencies those of mesh/fabric.h.
//
// Letters
//   M        bytes of the whole message (trace/cost.h)
//   R, g, k  ranks of the group, in a node (of the node with fewest), and nodes that hold some
//   f        bus_factor(kind, R)
//   a        latency of a call
//   B        of the fabric: what the group's ranks in a node reach times ring_share
//   N        of the network: a rank's way out times network_share
//   x, y     latency of a hop inside a node and between nodes
//
//   algorithm     kinds                   within one node                over k nodes
//   ring          all but send, recv and  a + s x + f M / B              a + s_in x + s_out y + f M / min(B, g N)
//                 all_to_all
//   tree          all_reduce, broadcast,  -                              a + c (g-1) x + c ceil(log2 k) y
//                 reduce                                                   + f M / (t min(B, g N))
//   hierarchical  all_reduce; by name     -                              inside and outside one after another
//                 also all_gather,
//                 reduce_scatter
//   in-switch     all_reduce, R > 2       a + 2 z                        -
//                                           + (R+1)/R M / (B of switch)
//   direct        all_to_all, send, recv  a + x + f M / P                a + y + the later of its bytes to ranks of
//                                                                          the node over P, of others over N
//
// s steps of the ring, of which 1 or 2 (all_reduce) for each border between nodes are s_out; c = 2 for all_reduce, else
// 1; t tree_share; z switch_latency; P the pair's bandwidth, or all pairs' together, times pair_share. A group with one
// rank per node has no x; uneven groups have no hierarchical form. A ring or tree also runs under the protocol for
// small messages: shorter hops, small_share of the bandwidth. The fastest is taken, as libraries do by tables of their
// own.
#pragma once

#include <optional>

#include "octavo/mesh/cluster.h"
#include "octavo/trace/cost.h"

namespace octavo {

struct CollectiveTime {
  Seconds seconds;
  Algorithm algorithm;
  bool small;  // under the protocol for small messages
};

/// Times of collectives over one group. Making it is cheap; a call is some 40 ns, so that a search makes one per
/// group and asks it often.
class CollectiveTimes {
 public:
  CollectiveTimes(const GroupLinks& links, const FabricTiming& timing);

  /// The fastest way; a group of one rank takes no time. Throws InternalError for negative bytes.
  CollectiveTime fastest(Collective kind, Bytes message) const;

  /// One algorithm, under its better protocol; nullopt if the table above does not have it for this kind and group.
  std::optional<Seconds> by(Algorithm algorithm, Collective kind, Bytes message) const;

 private:
  struct Protocol {
    double hop;              // x, seconds
    double network_hop;      // y
    double bandwidth_share;  // of B and N
  };
  Seconds ring(Collective kind, double message, const Protocol& protocol) const;
  Seconds tree(Collective kind, double message, const Protocol& protocol) const;
  Seconds hierarchical(Collective kind, double message) const;
  Seconds in_switch(double message) const;
  Seconds direct(Collective kind, double message) const;

  int num_ranks_, num_nodes_, ranks_per_node_;
  bool is_even_, has_switch_;
  double call_, inner_, outer_, tree_share_;  // a, B, N, t
  double stream_, pair_, pair_to_one_;        // min(B, g N); P of all peers, P of one
  double switch_step_, switch_rate_;
  Protocol normal_, small_;
};

}  // namespace octavo
