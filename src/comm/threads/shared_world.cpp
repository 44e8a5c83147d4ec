#include "comm/threads/shared_world.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

SharedWorld::SharedWorld(int num_ranks, Seconds deadline) : deadline_(deadline), states_(num_ranks) {
  for (int rank = 0; rank < num_ranks; ++rank) recorders_.push_back(std::make_unique<FlightRecorder>(rank));
}

std::string SharedWorld::report() const {
  std::string text;
  for (const auto& recorder : recorders_) text += recorder->to_string();
  return text;
}

Seconds SharedWorld::now() const {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now() - begin_).count();
}

SharedGroup& SharedWorld::join(int rank, int number, const RankGroup& group) {
  const std::lock_guard lock(mutex_);
  const std::string& agreed = cuts_.try_emplace(number, group.cut).first->second;
  if (agreed != group.cut) {
    throw UsageError(
        cat("[comm] rank ", rank, ": split #", number, " is ", group.cut, " here but ", agreed,
            " on another rank. Every rank must split the same mesh over the same axes in the same order."));
  }
  std::unique_ptr<SharedGroup>& shared = groups_[{number, group.ranks.front()}];
  if (!shared) shared = std::make_unique<SharedGroup>(group.name, group.ranks);
  return *shared;
}

void SharedWorld::leave(int rank) {
  states_[rank].store(RankState::Returned, std::memory_order_release);
}

void SharedWorld::fail(int rank, const Failure& failure, std::exception_ptr error, bool caused_by_peer) {
  const std::lock_guard lock(mutex_);
  std::exception_ptr& first = caused_by_peer ? first_effect_ : first_cause_;
  if (!first) first = std::move(error);
  failures_.emplace(rank, failure);
  for (auto& [key, group] : groups_) {
    const auto& members = group->ranks();
    if (std::find(members.begin(), members.end(), rank) != members.end()) group->poison().set(rank, failure);
  }
  states_[rank].store(RankState::Failed, std::memory_order_release);
}

Failure SharedWorld::failure(int rank) const {
  const std::lock_guard lock(mutex_);
  return failures_.at(rank);
}

}  // namespace octavo
