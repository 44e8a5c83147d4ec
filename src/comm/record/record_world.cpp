#include "octavo/comm/record/record_world.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/checked_communicator.h"
#include "comm/exchange_scratch.h"
#include "comm/lent_memory.h"
#include "comm/staged_call.h"
#include "comm/threads/direct_transfer.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

class RecordPending final : public PendingState {
 public:
  RecordPending(StagedCall staged, at::Tensor scratch, bool borrows, BorrowedMemory borrowed)
      : staged_(std::move(staged)), scratch_(std::move(scratch)), borrows_(borrows), borrowed_(std::move(borrowed)) {}
  TransferTimes wait() override {
    staged_.finish();
    return {};
  }
  bool abandon() noexcept override { return true; }
  bool holds_memory() const override { return borrows_; }

 private:
  StagedCall staged_;
  at::Tensor scratch_;
  const bool borrows_;
  BorrowedMemory borrowed_;
};

class RecordCommunicator final : public CheckedCommunicator {
 public:
  RecordCommunicator(const RankGroup& group, int index, Backend backend, World& world)
      : CheckedCommunicator(world.rank(), world.recorder(), group.name),
        name_(group.name),
        index_(index),
        size_(static_cast<int>(group.ranks.size())),
        backend_(backend),
        ledger_(world.ledger()) {
    if (size_ > 1) ledger_group_ = ledger_.add_group(name_);
  }

  int index() const override { return index_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }
  bool shares_memory() const override { return backend_ == Backend::Threads; }

 protected:
  Pending post(TensorCall call) override {
    const bool reads = borrows(call, index_);
    BorrowedMemory borrowed;
    if (reads && backend_ == Backend::Gloo) borrowed = BorrowedMemory::allocate(call.out);
    StagedCall staged(std::move(call), index_, /*with_values=*/false);
    const RawCall raw = staged.raw();
    at::Tensor scratch;
    if (size_ > 1) {
      Transfer transfer = direct_transfer(raw, index_, size_);
      transfer.group = ledger_group_;
      if (backend_ == Backend::Gloo) {
        const ExchangePlan plan = exchange_plan(raw, index_, size_);
        scratch = exchange_scratch(plan, staged.call());
        transfer.copied = sent_bytes(plan, raw);
      }
      ledger_.post(transfer);
    }
    return Pending(std::make_unique<RecordPending>(std::move(staged), std::move(scratch), reads, std::move(borrowed)));
  }

 private:
  const std::string name_;
  const int index_;
  const int size_;
  const Backend backend_;
  Ledger& ledger_;
  int ledger_group_ = 0;
};

class RecordWorld final : public World {
 public:
  RecordWorld(int rank, int size, Backend backend) : rank_(rank), size_(size), backend_(backend), recorder_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string backend() const override { return "record"; }
  bool reads_in_place() const override { return backend_ == Backend::Threads; }

  using World::split;
  std::unique_ptr<Communicator> split(const RankGroup& group) override {
    const auto here = std::find(group.ranks.begin(), group.ranks.end(), rank_);
    return std::make_unique<RecordCommunicator>(group, static_cast<int>(here - group.ranks.begin()), backend_, *this);
  }

  Ledger& ledger() override { return ledger_; }
  FlightRecorder& recorder() override { return recorder_; }

 private:
  const int rank_;
  const int size_;
  const Backend backend_;
  Ledger ledger_;
  FlightRecorder recorder_;
};

}  // namespace

std::unique_ptr<World> make_record_world(int rank, int size, Backend backend) {
  if (rank < 0 || rank >= size) {
    throw UsageError(cat("[comm] make_record_world: rank=", rank, ", size=", size, "; needs 0 <= rank < size."));
  }
  return std::make_unique<RecordWorld>(rank, size, backend);
}

}  // namespace octavo
