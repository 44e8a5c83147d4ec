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
// Direct is how ranks that share memory run it: everyone reads from everyone at once (all_reduce: each sums its own
// part, then copies the others). Both algorithms move the same bytes; they differ in steps, that is in latency.
// Lent memory costs what a broadcast, or a send and its recv, would; ranks that share memory read it and copy nothing.
#pragma once

#include <cstdint>

#include "octavo/base/units.h"
#include "octavo/trace/collective.h"

namespace octavo {

enum class Algorithm { Direct, Ring };

struct CollectiveCost {
  Bytes sent;  // bytes a rank sends, mean over the ranks of the group, rounded to a whole byte
  int steps;   // messages that must follow each other
};

/// The table above; a group of one rank moves nothing, in no steps. Throws InternalError unless num_ranks >= 1 and
/// message >= 0.
CollectiveCost collective_cost(Collective kind, Algorithm algorithm, int num_ranks, Bytes message);

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
