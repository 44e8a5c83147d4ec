// One rank's call of a collective on tensors, the same for every backend.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "comm/threads/wire_type.h"
#include "octavo/trace/collective.h"
#include "octavo/trace/purpose.h"

namespace octavo {

struct TensorCall {
  Collective kind;
  Purpose purpose;
  at::Tensor in;   // what peers read; undefined for recv
  at::Tensor out;  // what is written; undefined for send. The same tensor as `in` where the operation is in place
  std::int64_t count = 0;  // elements: of x; for reduce_scatter, all_gather and all_to_all of one rank's part
  int peer = 0;            // index of the root, or of the other end of a send or recv
  bool lends = false;      // broadcast, send and recv only: memory to read, instead of values
};

/// Whether rank `index` gets its tensor's memory by this call.
bool borrows(const TensorCall& call, int index);

/// Whether `out` of this rank is written (the root of a broadcast and the others of a reduce keep theirs, and so does
/// everyone where memory is lent).
bool writes_out(const TensorCall& call, int index);

/// The type of the call's elements. Throws UsageError for a dtype that cannot travel.
WireType call_element_type(const TensorCall& call);

/// Throws UsageError for a tensor that is not on the CPU; `backend` moves no others.
void check_on_cpu(const TensorCall& call, int rank, const std::string& group, const std::string& backend);

/// Who calls, for messages.
struct Caller {
  int rank;  // in the world
  int index;
  int num_ranks;  // in the group
  const std::string& group;
};

/// Throws UsageError unless the tensors are strided, of one dtype and device, of the right sizes, overlap only as
/// communicator.h allows, and the peer exists; of lent memory, unless owner and reader have what that demands.
void check_call(const TensorCall& call, const Caller& caller);

}  // namespace octavo
