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
    try {
      staged_.finish();
    } catch (...) {
      // Only a copy out of memory gets here; a destructor has no way to report it.
    }
    return true;
  }

 private:
  StagedCall staged_;
  ThreadPending pending_;  // destroyed first: its memory is staged_'s
};

}  // namespace

Pending ThreadsCommunicator::post(TensorCall call) {
  for (const at::Tensor& tensor : {call.in, call.out}) {
    if (tensor.defined() && !tensor.is_cpu()) {
      throw UsageError(cat("[comm] rank ", rank(), ": ", collective_name(call.kind), " over ", name(), ": a tensor on ",
                           tensor.device().str(), "; the threads backend moves CPU tensors only."));
    }
  }
  StagedCall staged(std::move(call), index(), /*with_values=*/true);
  ThreadPending pending = group_->post(staged.raw());
  return Pending(std::make_unique<ThreadsPending>(std::move(staged), std::move(pending)));
}

std::unique_ptr<Communicator> ThreadsWorld::split(const RankGroup& group) {
  return std::make_unique<ThreadsCommunicator>(rank_, rank_.split(group));
}

}  // namespace octavo
