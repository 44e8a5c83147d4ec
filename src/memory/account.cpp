#include "octavo/memory/account.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::string_view memory_category_name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::Weights:
      return "weights";
    case MemoryCategory::Gradients:
      return "gradients";
    case MemoryCategory::Optimizer:
      return "optimizer";
    case MemoryCategory::Activations:
      return "activations";
    case MemoryCategory::Workspace:
      return "workspace";
    case MemoryCategory::Communication:
      return "communication";
    case MemoryCategory::Data:
      return "data";
  }
  throw InternalError("[memory] unknown category");
}

std::string MemorySnapshot::to_string() const {
  std::array<int, kNumMemoryCategories> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return by_category[a] > by_category[b]; });
  std::vector<std::string> parts;
  for (const int category : order) {
    if (by_category[category] == 0) continue;
    parts.push_back(
        cat(memory_category_name(static_cast<MemoryCategory>(category)), " ", format_bytes(by_category[category])));
  }
  return join(parts, ", ");
}

AccountHandle MemoryAccount::create(Bytes limit) {
  return AccountHandle(new MemoryAccount(limit));
}

void MemoryAccount::retain() {
  references_.fetch_add(1, std::memory_order_relaxed);
}

void MemoryAccount::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void MemoryAccount::lock() const {
  while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
}

MemorySnapshot MemoryAccount::live() const {
  lock();
  const MemorySnapshot copy = live_;
  unlock();
  return copy;
}

MemorySnapshot MemoryAccount::peak() const {
  lock();
  const MemorySnapshot copy = peak_;
  unlock();
  return copy;
}

std::array<Bytes, kNumMemoryCategories> MemoryAccount::highest() const {
  lock();
  const std::array<Bytes, kNumMemoryCategories> copy = highest_;
  unlock();
  return copy;
}

void MemoryAccount::reset_peak() {
  lock();
  peak_ = live_;
  highest_ = live_.by_category;
  unlock();
}

void MemoryAccount::charge(MemoryCategory category, Bytes bytes) {
  lock();
  if (limit_ > 0 && live_.total + bytes > limit_) {
    unlock();
    refuse(category, bytes);
  }
  live_.total += bytes;
  Bytes& held = live_.by_category[static_cast<int>(category)];
  held += bytes;
  Bytes& highest = highest_[static_cast<int>(category)];
  highest = std::max(highest, held);
  if (live_.total > peak_.total) peak_ = live_;
  unlock();
}

void MemoryAccount::discharge(MemoryCategory category, Bytes bytes) {
  lock();
  live_.total -= bytes;
  live_.by_category[static_cast<int>(category)] -= bytes;
  unlock();
}

ExecutedFlops MemoryAccount::flops() const {
  lock();
  const ExecutedFlops copy = flops_;
  unlock();
  return copy;
}

void MemoryAccount::add_flops(const ExecutedFlops& flops) {
  lock();
  flops_.matmul += flops.matmul;
  flops_.attention += flops.attention;
  flops_.attention_masked += flops.attention_masked;
  unlock();
}

void MemoryAccount::reset_flops() {
  lock();
  flops_ = {};
  unlock();
}

void MemoryAccount::refuse(MemoryCategory category, Bytes bytes) {
  const MemorySnapshot now = live();
  throw CheckFailed(cat("[memory] ", format_bytes(bytes), " more for ", memory_category_name(category),
                        " would exceed the limit of ", format_bytes(limit_),
                        " per rank; alive: ", format_bytes(now.total), " (", now.to_string(),
                        "). Use a smaller micro-batch, --stash recompute, or more ranks with data=N:zero1"));
}

}  // namespace octavo
