#include "comm/threads_world.h"

#include <ATen/ATen.h>

#include <utility>

#include "comm/lent_memory.h"
#include "comm/staged_call.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

class ThreadsPending final : public PendingState {
 public:
  ThreadsPending(StagedCall staged, ThreadPending pending, bool borrows)
      : staged_(std::move(staged)), pending_(std::move(pending)), borrows_(borrows) {}

  TransferTimes wait() override {
    const TransferTimes times = pending_.wait();
    staged_.finish();
    if (borrows_) borrowed_ = BorrowedMemory::of_owner(staged_.call().out, pending_.borrowed());
    return times;
  }

  bool abandon() noexcept override {
    if (!pending_.abandon()) return false;
    staged_.finish_quietly();
    return true;
  }

  bool holds_memory() const override { return borrows_; }

 private:
  StagedCall staged_;
  ThreadPending pending_;  // destroyed before staged_, whose memory it uses
  const bool borrows_;
  BorrowedMemory borrowed_;  // destroyed first: pending_ gives it back to its owner
};

}  // namespace

Pending ThreadsCommunicator::post(TensorCall call) {
  check_on_cpu(call, rank(), name(), "threads");
  StagedCall staged(std::move(call), index(), /*with_values=*/true);
  const bool reads = borrows(staged.call(), index()), owns = staged.call().lends && !reads;
  ThreadPending pending = group_->post(staged.raw(), owns ? counted_memory(staged.call().in) : nullptr);
  return Pending(std::make_unique<ThreadsPending>(std::move(staged), std::move(pending), reads));
}

std::unique_ptr<Communicator> ThreadsWorld::split(const RankGroup& group) {
  return std::make_unique<ThreadsCommunicator>(rank_, rank_.split(group));
}

}  // namespace octavo
