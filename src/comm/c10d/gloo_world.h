// World and Communicator on processes: tensors in front of GlooGroup.
#pragma once

#include <memory>
#include <string>

#include "comm/c10d/gloo_group.h"
#include "comm/c10d/gloo_rank.h"
#include "comm/checked_communicator.h"
#include "octavo/comm/world.h"

namespace octavo {

class GlooCommunicator final : public CheckedCommunicator {
 public:
  /// Both must outlive it.
  GlooCommunicator(GlooRank& rank, GlooGroup& group)
      : CheckedCommunicator(rank.rank(), rank.recorder(), group.name()), group_(group) {}

  int index() const override { return group_.index(); }
  int size() const override { return group_.size(); }
  const std::string& name() const override { return group_.name(); }
  bool shares_memory() const override { return false; }

 protected:
  Pending post(TensorCall call) override;

 private:
  GlooGroup& group_;
};

class GlooWorld final : public World {
 public:
  explicit GlooWorld(GlooRank& rank) : rank_(rank) {}

  int rank() const override { return rank_.rank(); }
  int size() const override { return rank_.size(); }
  std::string backend() const override { return "gloo"; }
  bool reads_in_place() const override { return false; }
  using World::split;
  std::unique_ptr<Communicator> split(const RankGroup& group) override {
    return std::make_unique<GlooCommunicator>(rank_, rank_.split(group));
  }
  Ledger& ledger() override { return rank_.ledger(); }
  FlightRecorder& recorder() override { return rank_.recorder(); }
  void exchange_times() override { rank_.exchange_times(); }

 private:
  GlooRank& rank_;
};

}  // namespace octavo
