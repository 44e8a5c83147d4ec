#include "ops/allocation_trace.h"

#include <algorithm>
#include <utility>

namespace octavo::testing {
namespace {

class RecordingAllocator final : public c10::Allocator {
 public:
  RecordingAllocator(c10::Allocator* real, AllocationTrace* trace) : real_(real), trace_(trace) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr inner = real_->allocate(bytes);
    const auto size = static_cast<std::int64_t>(bytes);
    if (size > 0) trace_->push_back(size);
    void* data = inner.get();
    const c10::Device device = inner.device();
    return {data, new Block{std::move(inner), size, trace_}, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }

 private:
  struct Block {
    c10::DataPtr inner;
    std::int64_t size;
    AllocationTrace* trace;
  };
  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    if (block->size > 0) block->trace->push_back(-block->size);
    delete block;
  }

  c10::Allocator* real_;
  AllocationTrace* trace_;
};

/// Puts the real allocator back even when the body throws.
class Replacement {
 public:
  Replacement(c10::DeviceType device, AllocationTrace* trace)
      : device_(device), real_(c10::GetAllocator(device)), recording_(real_, trace) {
    c10::SetAllocator(device_, &recording_, /*priority=*/1);
  }
  ~Replacement() { c10::SetAllocator(device_, real_, /*priority=*/1); }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

 private:
  const c10::DeviceType device_;
  c10::Allocator* real_;
  RecordingAllocator recording_;
};

}  // namespace

AllocationTrace allocations_of(c10::DeviceType device, const std::function<void()>& body) {
  AllocationTrace trace;
  const Replacement replacement(device, &trace);
  body();
  return trace;
}

std::int64_t peak_bytes(const AllocationTrace& trace) {
  std::int64_t live = 0, peak = 0;
  for (const std::int64_t bytes : trace) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace octavo::testing
