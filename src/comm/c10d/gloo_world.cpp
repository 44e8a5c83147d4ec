#include "comm/c10d/gloo_world.h"

#include <optional>
#include <utility>

#include "comm/exchange_scratch.h"
#include "comm/lent_memory.h"
#include "comm/staged_call.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

class GlooPending final : public PendingState {
 public:
  GlooPending(StagedCall staged, at::Tensor scratch, std::optional<BorrowedMemory> borrowed, GlooGroup& group,
              GlooGroup::Ticket ticket)
      : staged_(std::move(staged)),
        scratch_(std::move(scratch)),
        borrowed_(std::move(borrowed)),
        group_(group),
        ticket_(std::move(ticket)) {}

  TransferTimes wait() override {
    const TransferTimes times = group_.wait(ticket_);
    staged_.finish();
    return times;
  }

  bool abandon() noexcept override {
    if (!group_.abandon(ticket_)) return false;
    staged_.finish_quietly();
    return true;
  }

  bool holds_memory() const override { return borrowed_.has_value(); }

 private:
  StagedCall staged_;
  at::Tensor scratch_;                      // where the peers' addends arrive
  std::optional<BorrowedMemory> borrowed_;  // where lent values arrive
  GlooGroup& group_;
  GlooGroup::Ticket ticket_;
};

}  // namespace

Pending GlooCommunicator::post(TensorCall call) {
  check_on_cpu(call, rank(), name(), "gloo");
  std::optional<BorrowedMemory> borrowed;
  if (borrows(call, index())) borrowed = BorrowedMemory::allocate(call.out);
  StagedCall staged(std::move(call), index(), /*with_values=*/true);
  const RawCall raw = staged.raw();
  ExchangePlan plan = exchange_plan(raw, index(), size());
  at::Tensor scratch = exchange_scratch(plan, staged.call());
  auto* memory = scratch.defined() ? static_cast<std::byte*>(scratch.mutable_data_ptr()) : nullptr;
  GlooGroup::Ticket ticket = group_.post(raw, std::move(plan), memory);
  return Pending(std::make_unique<GlooPending>(std::move(staged), std::move(scratch), std::move(borrowed), group_,
                                               std::move(ticket)));
}

}  // namespace octavo
