// Records every allocation and release of libtorch on the CPU or the meta device, to hold one against the other.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace octavo::testing {

/// Bytes in order: positive for an allocation, negative for a release. Empty blocks are left out.
using AllocationTrace = std::vector<std::int64_t>;

/// Runs `body` with the device's allocator replaced by one that records. Not thread-safe.
AllocationTrace allocations_of(c10::DeviceType device, const std::function<void()>& body);

/// The highest sum of live bytes.
std::int64_t peak_bytes(const AllocationTrace& trace);

}  // namespace octavo::testing
