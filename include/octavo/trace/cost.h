// What a collective must move: the one set of formulas that the engine books and the planner predicts.
//
// Letters: R ranks in the group, M bytes of the whole message, e bytes per element.
// The whole message is the larger tensor of the call: x of all_reduce, broadcast, reduce, send and recv; `in` of
// reduce_scatter and all_to_all; `out` of all_gather.
//
//   kind            bytes a rank sends (mean)   steps, direct   steps, ring
//   all_reduce      2 (R-1)/R M                 2               2
//   reduce_scatter  (R-1)/R M                   1               R-1
//   all_gather      (R-1)/R M                   1               R-1
//   broadcast       (R-1)/R M                   1               R-1           a chain: every rank but the last sends M
//   reduce          (R-1)/R M                   1               R-1           a chain towards the root
//   all_to_all      (R-1)/R M                   1               R-1           one exchange per distance
//   send            M                           1               1
//   recv            0                           1               1             its bytes are booked by the sender
//   barrier         0                           1               2       a token twice round
//
// Three algorithms are planned with, and not run by the engine yet:
//
//   kind            algorithm     bytes a rank sends (mean)                     steps
//   all_reduce      tree          2 (R-1)/R M                                   2 ceil(log2 R)
//   broadcast       tree          (R-1)/R M                                     ceil(log2 R)
//   reduce          tree          (R-1)/R M                                     ceil(log2 R)
//   all_reduce      in-switch     (R+1)/R M: M for the switch to sum, then the  2
//                                 copy of its own part
//   over k nodes of g ranks, R = k g (hierarchical_cost):
//   all_reduce      hierarchical  2 (g-1)/g M inside, 2 (k-1)/k M/g outside     2 (g-1) inside, 2 (k-1) outside
//   reduce_scatter  hierarchical  (g-1)/g M inside, (k-1)/k M/g outside         g-1 inside, k-1 outside
//   all_gather      hierarchical  (g-1)/g M inside, (k-1)/k M/g outside         g-1 inside, k-1 outside
//
// Direct is how ranks that share memory run it: everyone reads from everyone at once (all_reduce: each sums its own
// part, then copies the others). Direct and ring move the same bytes; they differ in steps, that is in latency.
// Lent memory costs what a broadcast, or a send and its recv, would; ranks that share memory read it and copy nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "octavo/base/units.h"
#include "octavo/trace/collective.h"

namespace octavo {

enum class Algorithm { Direct, Ring, Tree, InSwitch, Hierarchical };

/// "direct", "ring", "tree", "in-switch", "hierarchical".
std::string_view algorithm_name(Algorithm algorithm);

struct CollectiveCost {
  Bytes sent;  // bytes a rank sends, mean over the ranks of the group, rounded to a whole byte
  int steps;   // messages that must follow each other
};

/// The tables above; a group of one rank moves nothing, in no steps. Throws InternalError unless num_ranks >= 1 and
/// message >= 0, and for a kind that the algorithm cannot do.
CollectiveCost collective_cost(Collective kind, Algorithm algorithm, int num_ranks, Bytes message);

/// What a rank sends inside its node and out of it.
struct HierarchicalCost {
  CollectiveCost inside;
  CollectiveCost outside;
};

/// Throws InternalError as above, and for kinds other than all_reduce, reduce_scatter and all_gather.
HierarchicalCost hierarchical_cost(Collective kind, int ranks_per_node, int num_nodes, Bytes message);

/// Messages' worth that pass the busiest rank's link in one direction, as nccl-tests counts its bus bandwidth: what the
/// first table says, but 1 for a broadcast and a reduce (every rank of the chain but its end sends the whole message),
/// a send and a recv; 0 for a barrier and a group of one rank.
double bus_factor(Collective kind, int num_ranks);

/// Elements [begin, end) of a message.
struct Part {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

/// The part of `count` elements that rank `index` sums under the direct algorithm. Parts start on multiples of 32
/// elements, so that two ranks never write one cache line; the last parts of a short message are empty.
Part direct_part(std::int64_t count, int num_ranks, int index);

/// One rank's side of a call.
struct DirectCall {
  Collective kind;
  int num_ranks;
  int index;                   // of this rank in the group
  int root = 0;                // index of the root; read for broadcast only
  std::int64_t num_elements;   // of the whole message
  std::int64_t element_bytes;  // e
  bool lends = false;          // the peers read this memory where it lies
};

/// Bytes that this rank copies out of its peers' memory under the direct algorithm. Sums read the peers' memory in
/// place and copy nothing, so reduce_scatter and reduce are zero; so is what is lent.
Bytes direct_copied_bytes(const DirectCall& call);

}  // namespace octavo
