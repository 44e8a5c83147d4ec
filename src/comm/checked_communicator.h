// What all backends share: the operations of Communicator, checked and turned into one kind of call.
#pragma once

#include <string>

#include "comm/tensor_call.h"
#include "octavo/comm/communicator.h"
#include "octavo/trace/flight_recorder.h"

namespace octavo {

/// A backend implements index(), size(), name(), shares_memory() and post().
class CheckedCommunicator : public Communicator {
 public:
  /// `rank`: in the world. The recorder must outlive this and its Pendings.
  CheckedCommunicator(int rank, FlightRecorder& recorder, const std::string& group)
      : rank_(rank), recorder_(recorder), recorder_group_(recorder.add_group(group)) {}

  Pending all_reduce(at::Tensor x, Purpose purpose) final;
  Pending reduce_scatter(at::Tensor out, at::Tensor in, Purpose purpose) final;
  Pending all_gather(at::Tensor out, at::Tensor in, Purpose purpose) final;
  Pending broadcast(at::Tensor x, int root, Purpose purpose) final;
  Pending reduce(at::Tensor x, int root, Purpose purpose) final;
  Pending all_to_all(at::Tensor out, at::Tensor in, Purpose purpose) final;
  Pending send(at::Tensor x, int peer, Purpose purpose) final;
  Pending recv(at::Tensor x, int peer, Purpose purpose) final;
  Pending share(at::Tensor x, int root, Purpose purpose) final;
  Pending lend(at::Tensor x, int peer, Purpose purpose) final;
  Pending borrow(at::Tensor x, int peer, Purpose purpose) final;
  void barrier() final;

 protected:
  int rank() const { return rank_; }  // in the world

  /// Posts a call whose tensors fit together.
  virtual Pending post(TensorCall call) = 0;

 private:
  Pending checked(TensorCall call);
  Pending recorded(TensorCall call);

  const int rank_;
  FlightRecorder& recorder_;
  const int recorder_group_;
};

}  // namespace octavo
