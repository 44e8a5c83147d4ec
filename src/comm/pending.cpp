#include "octavo/comm/pending.h"

#include <utility>

namespace octavo {

Pending::Pending(std::unique_ptr<PendingState> state) : state_(std::move(state)) {}

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    if (state_) state_->abandon();
    state_ = std::move(other.state_);
  }
  return *this;
}

Pending::~Pending() {
  if (state_) state_->abandon();
}

TransferTimes Pending::wait() {
  if (!state_) return {};
  const std::unique_ptr<PendingState> state = std::move(state_);
  return state->wait();
}

}  // namespace octavo
