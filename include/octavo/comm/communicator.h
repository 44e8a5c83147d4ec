// The collectives of one group of ranks. Every rank of the group calls the same operations in the same order, with
// equal shapes, dtypes and purposes. All return at once; the result may be used, and the inputs changed, after wait().
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "octavo/comm/pending.h"
#include "octavo/trace/purpose.h"

namespace octavo {

/// Letters: R ranks in the group, n elements. Dtypes: float32, float64, bfloat16, int64. Sums are over ranks 0 .. R-1
/// in that order, bfloat16 summed in float32 and rounded once, so every run and every rank has the same bits.
/// Tensors may be empty and may be non-contiguous (a backend copies where it must). On one rank every operation is the
/// identity. Throws UsageError for shapes or dtypes that do not fit, and on every rank of the group if their calls
/// differ; CommError on a lost or late peer. A communicator that failed once stays failed.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int index() const = 0;                // of this rank in the group, in [0, size())
  virtual int size() const = 0;                 // ranks in the group
  virtual const std::string& name() const = 0;  // the axes it spans, as in messages and ledgers: "data"
  virtual bool shares_memory() const = 0;       // whether what is lent is read where it lies; the same on all ranks

  /// x [n] on every rank becomes the sum over ranks, in place.
  virtual Pending all_reduce(at::Tensor x, Purpose purpose) = 0;
  /// in [R*n] -> out [n]: part index() of the sum over ranks. `out` may be in's own part index(): then that part is
  /// overwritten and the rest of `in` keeps its values.
  virtual Pending reduce_scatter(at::Tensor out, at::Tensor in, Purpose purpose) = 0;
  /// in [n] -> out [R*n], rank after rank. `in` may be out's own part index().
  virtual Pending all_gather(at::Tensor out, at::Tensor in, Purpose purpose) = 0;
  /// x [n] of rank `root` on every rank.
  virtual Pending broadcast(at::Tensor x, int root, Purpose purpose) = 0;
  /// x [n] on rank `root` becomes the sum over ranks; elsewhere it is unchanged.
  virtual Pending reduce(at::Tensor x, int root, Purpose purpose) = 0;
  /// in [R*n] -> out [R*n]: part q of out is part index() of rank q's in. `out` and `in` must not overlap.
  virtual Pending all_to_all(at::Tensor out, at::Tensor in, Purpose purpose) = 0;
  /// Point to point; a send meets the receive that `peer` posts for this rank in the same order.
  virtual Pending send(at::Tensor x, int peer, Purpose purpose) = 0;
  virtual Pending recv(at::Tensor x, int peer, Purpose purpose) = 0;

  /// Lending: values are passed on to be read only. Where ranks share memory a reader gets the owner's own and nothing
  /// is copied; elsewhere they travel as a broadcast or a send would, into memory that the reader's call allocates.
  ///
  /// The owner's x is contiguous and has memory. A reader's x comes from without_memory(); it has the owner's values
  /// from wait() until its Pending is destroyed or assigned to: that releases it, and x has no memory again. Views of x
  /// are x. A reader's wait() needs only that all have posted. The owner's returns when every reader has released, so
  /// until then x may not be changed, and a rank must release what it holds before it waits for what it lent: else two
  /// ranks may wait for each other. What was borrowed may be lent on, to readers that release it first. When the
  /// owner's wait() throws, readers may still read x; its memory lives until they have released it.
  ///
  /// x of rank `root`, on every rank.
  virtual Pending share(at::Tensor x, int root, Purpose purpose) = 0;
  /// Point to point; a lend meets the borrow that `peer` posts for this rank in the same order, sends and receives
  /// counted too.
  virtual Pending lend(at::Tensor x, int peer, Purpose purpose) = 0;
  virtual Pending borrow(at::Tensor x, int peer, Purpose purpose) = 0;

  /// Returns when every rank of the group has called it.
  virtual void barrier() = 0;
};

}  // namespace octavo
