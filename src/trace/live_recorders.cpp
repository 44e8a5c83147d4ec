#include "octavo/trace/live_recorders.h"

#include <algorithm>

namespace octavo {

LiveRecorders::Entry::Entry(LiveRecorders* list, const FlightRecorder& recorder) : list_(list), recorder_(recorder) {
  if (list_ == nullptr) return;
  const std::lock_guard lock(list_->mutex_);
  list_->recorders_.push_back(&recorder_);
}

LiveRecorders::Entry::~Entry() {
  if (list_ == nullptr) return;
  const std::lock_guard lock(list_->mutex_);
  std::erase(list_->recorders_, &recorder_);
}

std::string LiveRecorders::to_string() const {
  const std::lock_guard lock(mutex_);
  if (recorders_.empty()) return "no rank runs\n";
  std::vector<const FlightRecorder*> by_rank = recorders_;
  std::sort(by_rank.begin(), by_rank.end(), [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  std::string text;
  for (const FlightRecorder* recorder : by_rank) text += recorder->to_string();
  return text;
}

}  // namespace octavo
