// A call's tensors as contiguous memory: themselves where they are contiguous, else copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "comm/tensor_call.h"
#include "comm/threads/lane.h"

namespace octavo {

/// Keeps the tensors and their copies alive.
class StagedCall {
 public:
  /// `index`: of this rank in the group. Without `with_values` the copies have memory, but nothing is ever copied.
  StagedCall(TensorCall call, int index, bool with_values);

  const TensorCall& call() const { return call_; }
  /// The same as raw memory; null where a tensor has none, as on meta.
  RawCall raw() const;

  /// Once the operation is done: copies the result to where the caller wants it, and tells autograd that it was
  /// written.
  void finish();
  /// The same where nobody can be told of an error: in a destructor. Only a copy out of memory makes one.
  void finish_quietly() noexcept;

 private:
  TensorCall call_;
  at::Tensor in_;   // contiguous; undefined where call_.in is
  at::Tensor out_;  // contiguous; undefined where call_.out is
  bool writes_;
  bool with_values_;
};

}  // namespace octavo
