#include "comm/c10d/gloo_operation.h"

#include <utility>

namespace octavo {

GlooLane::GlooLane(std::function<bool(GlooOperation&)> carry_out)
    : carry_out_(std::move(carry_out)), thread_([this] { loop(); }) {}

GlooLane::~GlooLane() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void GlooLane::push(std::shared_ptr<GlooOperation> operation) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(operation));
  if (queue_.size() == 1) changed_.notify_all();
}

void GlooLane::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::shared_ptr<GlooOperation> operation = queue_.front();
    lock.unlock();
    const bool complete = carry_out_(*operation);
    lock.lock();
    operation->complete = complete;
    operation->settled = true;
    queue_.pop_front();
    changed_.notify_all();
  }
}

bool GlooLane::await_settled(const GlooOperation& operation, std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return operation.settled; });
}

bool GlooLane::is_complete(const GlooOperation& operation) {
  const std::lock_guard lock(mutex_);
  return operation.complete;
}

int GlooLane::waits_for() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() ? -1 : queue_.front()->waits_for.load();
}

}  // namespace octavo
