#include "comm/checked_communicator.h"

#include <utility>

namespace octavo {
namespace {

TensorCall in_place(Collective kind, at::Tensor x, int root, Purpose purpose) {
  const std::int64_t count = x.defined() ? x.numel() : 0;
  return {.kind = kind, .purpose = purpose, .in = x, .out = std::move(x), .count = count, .peer = root};
}

std::int64_t num_elements(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.numel() : 0;
}

TensorCall sent(at::Tensor x, int peer, Purpose purpose, bool lends) {
  const std::int64_t count = num_elements(x);
  return {.kind = Collective::Send,
          .purpose = purpose,
          .in = std::move(x),
          .out = {},
          .count = count,
          .peer = peer,
          .lends = lends};
}

TensorCall received(at::Tensor x, int peer, Purpose purpose, bool lends) {
  const std::int64_t count = num_elements(x);
  return {.kind = Collective::Receive,
          .purpose = purpose,
          .in = {},
          .out = std::move(x),
          .count = count,
          .peer = peer,
          .lends = lends};
}

}  // namespace

Pending CheckedCommunicator::checked(TensorCall call) {
  check_call(call, {.rank = rank_, .index = index(), .num_ranks = size(), .group = name()});
  return recorded(std::move(call));
}

Pending CheckedCommunicator::recorded(TensorCall call) {
  const std::int64_t number = recorder_.posted({.group = recorder_group_,
                                                .purpose = call.purpose,
                                                .kind = call.kind,
                                                .count = call.count,
                                                .dtype = wire_name(call_element_type(call)),
                                                .lends = call.lends});
  Pending pending = post(std::move(call));
  pending.recorded_as(recorder_, number);
  return pending;
}

Pending CheckedCommunicator::all_reduce(at::Tensor x, Purpose purpose) {
  return checked(in_place(Collective::AllReduce, std::move(x), 0, purpose));
}

Pending CheckedCommunicator::reduce_scatter(at::Tensor out, at::Tensor in, Purpose purpose) {
  const std::int64_t count = num_elements(out);
  return checked({.kind = Collective::ReduceScatter,
                  .purpose = purpose,
                  .in = std::move(in),
                  .out = std::move(out),
                  .count = count});
}

Pending CheckedCommunicator::all_gather(at::Tensor out, at::Tensor in, Purpose purpose) {
  const std::int64_t count = num_elements(in);
  return checked(
      {.kind = Collective::AllGather, .purpose = purpose, .in = std::move(in), .out = std::move(out), .count = count});
}

Pending CheckedCommunicator::broadcast(at::Tensor x, int root, Purpose purpose) {
  return checked(in_place(Collective::Broadcast, std::move(x), root, purpose));
}

Pending CheckedCommunicator::reduce(at::Tensor x, int root, Purpose purpose) {
  return checked(in_place(Collective::Reduce, std::move(x), root, purpose));
}

Pending CheckedCommunicator::all_to_all(at::Tensor out, at::Tensor in, Purpose purpose) {
  const std::int64_t count = num_elements(in) / size();
  return checked(
      {.kind = Collective::AllToAll, .purpose = purpose, .in = std::move(in), .out = std::move(out), .count = count});
}

Pending CheckedCommunicator::send(at::Tensor x, int peer, Purpose purpose) {
  return checked(sent(std::move(x), peer, purpose, /*lends=*/false));
}

Pending CheckedCommunicator::recv(at::Tensor x, int peer, Purpose purpose) {
  return checked(received(std::move(x), peer, purpose, /*lends=*/false));
}

Pending CheckedCommunicator::share(at::Tensor x, int root, Purpose purpose) {
  TensorCall call = in_place(Collective::Broadcast, std::move(x), root, purpose);
  call.lends = true;
  return checked(std::move(call));
}

Pending CheckedCommunicator::lend(at::Tensor x, int peer, Purpose purpose) {
  return checked(sent(std::move(x), peer, purpose, /*lends=*/true));
}

Pending CheckedCommunicator::borrow(at::Tensor x, int peer, Purpose purpose) {
  return checked(received(std::move(x), peer, purpose, /*lends=*/true));
}

void CheckedCommunicator::barrier() {
  recorded({.kind = Collective::Barrier, .purpose = Purpose::Control, .in = {}, .out = {}}).wait();
}

}  // namespace octavo
