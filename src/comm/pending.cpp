#include "octavo/comm/pending.h"

#include <utility>

namespace octavo {

Pending::Pending(std::unique_ptr<PendingState> state) : state_(std::move(state)) {}

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    abandon();
    state_ = std::move(other.state_);
    waited_ = other.waited_;
    recorder_ = other.recorder_;
    number_ = other.number_;
  }
  return *this;
}

Pending::~Pending() {
  abandon();
}

void Pending::abandon() noexcept {
  if (state_ && !waited_ && state_->abandon()) record_done();
}

void Pending::recorded_as(FlightRecorder& recorder, std::int64_t number) {
  recorder_ = &recorder;
  number_ = number;
}

void Pending::record_done() {
  if (recorder_ != nullptr) recorder_->done(number_);
}

TransferTimes Pending::wait() {
  if (!state_ || waited_) return {};
  std::unique_ptr<PendingState> state = std::move(state_);
  const TransferTimes times = state->wait();
  record_done();
  if (state->holds_memory()) {
    state_ = std::move(state);
    waited_ = true;
  }
  return times;
}

}  // namespace octavo
