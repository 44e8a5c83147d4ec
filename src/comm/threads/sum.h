// Sums over ranks, read straight from their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/threads/wire_type.h"

namespace octavo {

/// out[i] = sources[0][i] + sources[1][i] + ... in that order, for `count` elements. bfloat16 is summed in float32 and
/// rounded once, to nearest even. `out` may be one of the sources, but must not overlap one otherwise.
void sum_over_ranks(WireType type, std::byte* out, std::span<const std::byte* const> sources, std::int64_t count);

}  // namespace octavo
