#include "comm/threads/thread_group.h"

#include <exception>

#include "comm/threads/direct_transfer.h"

namespace octavo {

ThreadPending::ThreadPending(ThreadRank& rank, Operation& operation)
    : rank_(&rank), operation_(&operation), exceptions_at_post_(std::uncaught_exceptions()) {}

ThreadPending::ThreadPending(ThreadPending&& other) noexcept
    : rank_(other.rank_),
      operation_(std::exchange(other.operation_, nullptr)),
      exceptions_at_post_(other.exceptions_at_post_),
      held_(std::move(other.held_)) {}

TransferTimes ThreadPending::wait() {
  if (operation_ == nullptr) return {};
  Operation& operation = *std::exchange(operation_, nullptr);
  TransferTimes times;
  try {
    times = rank_->wait(operation);
  } catch (...) {
    rank_->release(operation);
    throw;
  }
  held_ = std::move(operation.held);
  rank_->release(operation);
  return times;
}

bool ThreadPending::abandon() noexcept {
  if (operation_ == nullptr) return false;
  const bool unwinding = std::uncaught_exceptions() > exceptions_at_post_;
  if (unwinding && !operation_->complete) {
    Operation& operation = *std::exchange(operation_, nullptr);
    rank_->poison_unwinding(operation);
    rank_->release(operation);
    return false;
  }
  try {
    wait();
    return true;
  } catch (...) {
    return false;  // the group stays poisoned; its next call throws
  }
}

ThreadGroup::ThreadGroup(ThreadRank& rank, SharedGroup& shared, int index)
    : rank_(rank), shared_(shared), index_(index), everyone_{.lane = &shared.everyone(), .num_posted = 0} {
  if (size() > 1) ledger_group_ = rank.ledger().add_group(name());
}

ThreadGroup::Endpoint& ThreadGroup::endpoint(const RawCall& call) {
  if (call.kind != Collective::Send && call.kind != Collective::Receive) return everyone_;
  const auto [found, is_new] = pairs_.try_emplace({call.kind, call.peer});
  if (is_new) {
    const bool sends = call.kind == Collective::Send;
    found->second = {.lane = &shared_.pair(sends ? index_ : call.peer, sends ? call.peer : index_), .num_posted = 0};
  }
  return found->second;
}

ThreadPending ThreadGroup::post(const RawCall& call, std::shared_ptr<const void> lent) {
  Endpoint& meeting = endpoint(call);
  Operation& operation = rank_.new_operation();
  operation.group = &shared_;
  operation.lane = meeting.lane;
  operation.member = index_;
  operation.participant = call.kind == Collective::Send ? 0 : call.kind == Collective::Receive ? 1 : index_;
  operation.number = meeting.num_posted + 1;
  operation.step = rank_.recorder().step();
  operation.call = call;
  const bool owns = call.kind == Collective::Send || (call.kind == Collective::Broadcast && call.peer == index_);
  if (call.lends && owns) {
    operation.loan = std::make_shared<Loan>(std::move(lent), meeting.lane->size(), operation.participant);
  }
  operation.stage = Stage::Queued;
  operation.complete = false;
  operation.booked = false;
  operation.posted = rank_.world_.now();
  if (shared_.poison().is_set()) {
    rank_.release(operation);
    rank_.throw_failure(operation);
  }
  ++meeting.num_posted;
  if (size() > 1) book(operation);
  rank_.post(operation);
  return ThreadPending(rank_, operation);
}

void ThreadGroup::book(Operation& operation) {
  Transfer transfer = direct_transfer(operation.call, index_, size());
  transfer.group = ledger_group_;
  transfer.posted = operation.posted;
  operation.ticket = rank_.ledger().post(transfer);
  operation.booked = true;
}

}  // namespace octavo
