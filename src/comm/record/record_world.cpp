#include "octavo/comm/record/record_world.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/checked_communicator.h"
#include "comm/staged_call.h"
#include "comm/threads/direct_transfer.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

class RecordPending final : public PendingState {
 public:
  explicit RecordPending(StagedCall staged) : staged_(std::move(staged)) {}
  TransferTimes wait() override {
    staged_.finish();
    return {};
  }
  void abandon() noexcept override {}

 private:
  StagedCall staged_;
};

class RecordCommunicator final : public CheckedCommunicator {
 public:
  RecordCommunicator(int rank, std::string name, int index, int size, Ledger& ledger)
      : CheckedCommunicator(rank), name_(std::move(name)), index_(index), size_(size), ledger_(ledger) {
    if (size_ > 1) ledger_group_ = ledger_.add_group(name_);
  }

  int index() const override { return index_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }

 protected:
  Pending post(TensorCall call) override {
    if (size_ > 1) {
      Transfer transfer = direct_transfer({.kind = call.kind,
                                           .purpose = call.purpose,
                                           .type = call_element_type(call),
                                           .peer = call.peer,
                                           .count = call.count},
                                          index_, size_);
      transfer.group = ledger_group_;
      ledger_.post(transfer);
    }
    return Pending(std::make_unique<RecordPending>(StagedCall(std::move(call), index_, /*with_values=*/false)));
  }

 private:
  const std::string name_;
  const int index_;
  const int size_;
  Ledger& ledger_;
  int ledger_group_ = 0;
};

class RecordWorld final : public World {
 public:
  RecordWorld(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string backend() const override { return "record"; }

  using World::split;
  std::unique_ptr<Communicator> split(const RankGroup& group) override {
    const auto here = std::find(group.ranks.begin(), group.ranks.end(), rank_);
    return std::make_unique<RecordCommunicator>(rank_, group.name, static_cast<int>(here - group.ranks.begin()),
                                                static_cast<int>(group.ranks.size()), ledger_);
  }

  Ledger& ledger() override { return ledger_; }

 private:
  const int rank_;
  const int size_;
  Ledger ledger_;
};

}  // namespace

std::unique_ptr<World> make_record_world(int rank, int size) {
  if (rank < 0 || rank >= size) {
    throw UsageError(cat("[comm] make_record_world: rank=", rank, ", size=", size, "; needs 0 <= rank < size."));
  }
  return std::make_unique<RecordWorld>(rank, size);
}

}  // namespace octavo
