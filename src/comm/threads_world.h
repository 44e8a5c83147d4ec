// World and Communicator on rank threads: tensors in front of the transport in comm/threads/.
#pragma once

#include <memory>
#include <string>

#include "comm/checked_communicator.h"
#include "comm/threads/thread_group.h"
#include "comm/threads/thread_rank.h"
#include "octavo/comm/world.h"

namespace octavo {

class ThreadsCommunicator final : public CheckedCommunicator {
 public:
  ThreadsCommunicator(ThreadRank& rank, std::unique_ptr<ThreadGroup> group)
      : CheckedCommunicator(rank.rank(), rank.recorder(), group->name()), group_(std::move(group)) {}

  int index() const override { return group_->index(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }
  bool shares_memory() const override { return true; }

 protected:
  Pending post(TensorCall call) override;

 private:
  std::unique_ptr<ThreadGroup> group_;
};

/// Belongs to one rank's thread; `rank` must outlive it.
class ThreadsWorld final : public World {
 public:
  explicit ThreadsWorld(ThreadRank& rank) : rank_(rank) {}

  int rank() const override { return rank_.rank(); }
  int size() const override { return rank_.size(); }
  std::string backend() const override { return "threads"; }
  bool reads_in_place() const override { return true; }
  using World::split;
  std::unique_ptr<Communicator> split(const RankGroup& group) override;
  Ledger& ledger() override { return rank_.ledger(); }
  FlightRecorder& recorder() override { return rank_.recorder(); }

 private:
  ThreadRank& rank_;
};

}  // namespace octavo
