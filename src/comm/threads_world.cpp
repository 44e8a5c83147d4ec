#include "comm/threads_world.h"

#include <ATen/ATen.h>

#include <utility>

#include "comm/staged_call.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

class ThreadsPending final : public PendingState {
 public:
  ThreadsPending(StagedCall staged, ThreadPending pending) : staged_(std::move(staged)), pending_(std::move(pending)) {}

  TransferTimes wait() override {
    const TransferTimes times = pending_.wait();
    staged_.finish();
    return times;
  }

  bool abandon() noexcept override {
    if (!pending_.abandon()) return false;
    staged_.finish_quietly();
    return true;
  }

 private:
  StagedCall staged_;
  ThreadPending pending_;  // destroyed first: its memory is staged_'s
};

}  // namespace

Pending ThreadsCommunicator::post(TensorCall call) {
  check_on_cpu(call, rank(), name(), "threads");
  StagedCall staged(std::move(call), index(), /*with_values=*/true);
  ThreadPending pending = group_->post(staged.raw());
  return Pending(std::make_unique<ThreadsPending>(std::move(staged), std::move(pending)));
}

std::unique_ptr<Communicator> ThreadsWorld::split(const RankGroup& group) {
  return std::make_unique<ThreadsCommunicator>(rank_, rank_.split(group));
}

}  // namespace octavo
