#include "comm/tensor_call.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::optional<WireType> element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return WireType::F32;
    case at::kDouble:
      return WireType::F64;
    case at::kBFloat16:
      return WireType::BF16;
    case at::kLong:
      return WireType::I64;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void refuse(const TensorCall& call, const Caller& caller, const std::string& what) {
  throw UsageError(cat("[comm] rank ", caller.rank, ": ", call_kind_name(call.kind, call.lends), " over ", caller.group,
                       ": ", what));
}

void check_tensor(const at::Tensor& tensor, const TensorCall& call, const Caller& caller) {
  if (!tensor.defined()) refuse(call, caller, "an undefined tensor; pass one with memory.");
  if (tensor.layout() != at::kStrided) refuse(call, caller, "a tensor that is not strided; make it dense first.");
  if (!element_type(tensor.scalar_type())) {
    refuse(call, caller,
           cat("dtype ", c10::toString(tensor.scalar_type()), "; use float32, float64, bfloat16 or int64."));
  }
}

/// Elements from the beginning of the storage, for tensors that are contiguous.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};

Range storage_range(const at::Tensor& tensor) {
  return {.begin = tensor.storage_offset(), .end = tensor.storage_offset() + tensor.numel()};
}

/// `whole` and `part` may share memory only where part is whole's own part.
void check_overlap(const TensorCall& call, const Caller& caller) {
  // Tensors that are not contiguous travel through copies.
  if (!call.in.is_contiguous() || !call.out.is_contiguous() || !call.in.is_alias_of(call.out)) return;
  const Range in = storage_range(call.in), out = storage_range(call.out);
  if (in.end <= out.begin || out.end <= in.begin) return;
  const Range& whole = call.kind == Collective::AllGather ? out : in;
  const Range& part = call.kind == Collective::AllGather ? in : out;
  const bool own_part = call.kind != Collective::AllToAll && part.begin == whole.begin + caller.index * call.count;
  if (!own_part) {
    refuse(call, caller,
           call.kind == Collective::AllToAll
               ? "in and out overlap; give them separate memory."
               : "in and out overlap; they may only where one is part index() of the other.");
  }
}

void check_lent(const TensorCall& call, const Caller& caller) {
  const at::Tensor& x = call.in.defined() ? call.in : call.out;
  if (!x.is_contiguous()) refuse(call, caller, "x is not contiguous; only contiguous memory can be lent.");
  const c10::DataPtr& memory = x.storage().data_ptr();
  const bool has_memory = memory.get() != nullptr || memory.get_context() != nullptr;
  if (borrows(call, caller.index)) {
    if (has_memory || x.storage_offset() != 0 || x.storage().nbytes() != x.nbytes()) {
      refuse(call, caller, "x has memory or is part of a tensor; readers pass one made by without_memory().");
    }
  } else if (x.is_cpu() && x.numel() > 0 && !has_memory) {
    refuse(call, caller, "x has no memory that could be lent.");
  }
}

}  // namespace

bool borrows(const TensorCall& call, int index) {
  if (!call.lends) return false;
  return call.kind == Collective::Receive || (call.kind == Collective::Broadcast && call.peer != index);
}

bool writes_out(const TensorCall& call, int index) {
  if (call.lends) return false;
  switch (call.kind) {
    case Collective::Broadcast:
      return index != call.peer;
    case Collective::Reduce:
      return index == call.peer;
    case Collective::Send:
    case Collective::Barrier:
      return false;
    case Collective::AllReduce:
    case Collective::ReduceScatter:
    case Collective::AllGather:
    case Collective::AllToAll:
    case Collective::Receive:
      return true;
  }
  throw InternalError("[comm] writes_out: a kind outside the enum.");
}

WireType call_element_type(const TensorCall& call) {
  if (call.kind == Collective::Barrier) return WireType::F32;
  const at::ScalarType type = (call.in.defined() ? call.in : call.out).scalar_type();
  internal_check(element_type(type).has_value(), "[comm] call_element_type: the call was not checked.");
  return *element_type(type);
}

void check_on_cpu(const TensorCall& call, int rank, const std::string& group, const std::string& backend) {
  for (const at::Tensor& tensor : {call.in, call.out}) {
    if (!tensor.defined() || tensor.is_cpu()) continue;
    throw UsageError(cat("[comm] rank ", rank, ": ", call_kind_name(call.kind, call.lends), " over ", group,
                         ": a tensor on ", tensor.device().str(), "; the ", backend,
                         " backend moves CPU tensors only."));
  }
}

void check_call(const TensorCall& call, const Caller& caller) {
  const bool has_in = call.kind != Collective::Receive, has_out = call.kind != Collective::Send;
  if (has_in) check_tensor(call.in, call, caller);
  if (has_out) check_tensor(call.out, call, caller);
  if (call.peer < 0 || call.peer >= caller.num_ranks) {
    refuse(call, caller, cat("peer or root ", call.peer, "; the group has indices 0 to ", caller.num_ranks - 1, "."));
  }
  const bool point_to_point = call.kind == Collective::Send || call.kind == Collective::Receive;
  if (point_to_point && call.peer == caller.index) refuse(call, caller, "the peer is this rank itself; copy instead.");
  if (call.lends) check_lent(call, caller);
  if (writes_out(call, caller.index) && at::has_internal_overlap(call.out) == at::MemOverlap::Yes) {
    refuse(call, caller, "elements of the output share memory (an expanded tensor); make it contiguous first.");
  }
  if (!has_in || !has_out || call.in.is_same(call.out)) return;
  if (call.in.scalar_type() != call.out.scalar_type() || call.in.device() != call.out.device()) {
    refuse(call, caller,
           cat("in is ", c10::toString(call.in.scalar_type()), " on ", call.in.device().str(), " but out ",
               c10::toString(call.out.scalar_type()), " on ", call.out.device().str(), "; they must be the same."));
  }
  const std::int64_t parts = call.count * caller.num_ranks;
  const std::int64_t in_needed = call.kind == Collective::AllGather ? call.count : parts;
  const std::int64_t out_needed = call.kind == Collective::ReduceScatter ? call.count : parts;
  if (call.in.numel() != in_needed || call.out.numel() != out_needed) {
    refuse(
        call, caller,
        cat("in has ", call.in.numel(), " elements and out ", call.out.numel(), "; over ", caller.num_ranks, " ranks ",
            call.kind == Collective::AllGather       ? "out needs that many times in's."
            : call.kind == Collective::ReduceScatter ? "in needs that many times out's."
                                                     : "both need the same multiple of the ranks."));
  }
  check_overlap(call, caller);
}

}  // namespace octavo
