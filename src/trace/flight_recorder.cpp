#include "octavo/trace/flight_recorder.h"

#include <algorithm>
#include <chrono>

#include "octavo/base/text.h"

namespace octavo {
namespace {

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

FlightRecorder::FlightRecorder(int rank) : rank_(rank), begin_ns_(clock_ns()) {}

Seconds FlightRecorder::now() const {
  return static_cast<Seconds>(clock_ns() - begin_ns_) * 1e-9;
}

int FlightRecorder::add_group(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find(groups_.begin(), groups_.end(), name);
  if (known != groups_.end()) return static_cast<int>(known - groups_.begin());
  groups_.push_back(name);
  return static_cast<int>(groups_.size()) - 1;
}

void FlightRecorder::set_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

std::optional<std::int64_t> FlightRecorder::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}

std::int64_t FlightRecorder::posted(const FlightCall& call) {
  const Seconds time = now();
  const std::lock_guard lock(mutex_);
  ++last_;
  ring_[last_ % kKept] = {.number = last_, .call = call, .step = step_, .done = false, .posted = time, .took = 0};
  return last_;
}

void FlightRecorder::done(std::int64_t number) {
  const Seconds time = now();
  const std::lock_guard lock(mutex_);
  FlightEntry& entry = ring_[number % kKept];
  if (entry.number != number) return;  // so many were posted since that it is forgotten
  entry.done = true;
  entry.took = time - entry.posted;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
  const Seconds time = now();
  const std::lock_guard lock(mutex_);
  std::vector<FlightEntry> entries;
  for (std::int64_t number = std::max<std::int64_t>(1, last_ - kKept + 1); number <= last_; ++number) {
    entries.push_back(ring_[number % kKept]);
    if (!entries.back().done) entries.back().took = time - entries.back().posted;
  }
  return entries;
}

std::string FlightRecorder::to_string() const {
  const std::vector<FlightEntry> kept = entries();
  if (kept.empty()) return cat("rank ", rank_, ": no collective yet\n");
  std::string text =
      cat("rank ", rank_, ", the last ", kept.size(), kept.size() == 1 ? " collective:" : " collectives:", "\n");
  const std::lock_guard lock(mutex_);
  for (const FlightEntry& entry : kept) {
    const FlightCall& call = entry.call;
    text += cat("  #", entry.number, " ", call_kind_name(call.kind, call.lends), " over ", groups_[call.group], " for ",
                purpose_name(call.purpose), ", ", with_commas(call.count), " ", call.dtype);
    if (entry.step) text += cat(", step ", *entry.step);
    text += cat(", posted at ", fixed(entry.posted, 3), " s, ", entry.done ? "done after " : "NOT DONE for ",
                format_seconds(entry.took), "\n");
  }
  return text;
}

}  // namespace octavo
