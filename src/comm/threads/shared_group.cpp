#include "comm/threads/shared_group.h"

#include <thread>

namespace octavo {

SharedGroup::SharedGroup(std::string name, std::vector<int> ranks)
    : name_(std::move(name)),
      ranks_(std::move(ranks)),
      everyone_(static_cast<int>(ranks_.size())),
      flags_(ranks_.size()) {}

Lane& SharedGroup::pair(int source, int target) {
  const std::lock_guard lock(pairs_mutex_);
  std::unique_ptr<Lane>& lane = pairs_[{source, target}];
  if (!lane) lane = std::make_unique<Lane>(2);
  return *lane;
}

SharedGroup::Access::Access(SharedGroup& group, int index) : flag_(group.flags_[index].raised) {
  flag_.store(true, std::memory_order_seq_cst);
  allowed_ = !group.poison_.is_set();
}

SharedGroup::Access::~Access() {
  flag_.store(false, std::memory_order_release);
}

void SharedGroup::await_quiet() const {
  for (const Flag& flag : flags_) {
    while (flag.raised.load(std::memory_order_seq_cst)) std::this_thread::yield();
  }
}

}  // namespace octavo
