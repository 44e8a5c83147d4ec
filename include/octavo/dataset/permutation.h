// A shuffle without a table: a pseudo-random permutation of {0, .., size-1} as a function of its key.
#pragma once

#include <cstdint>

namespace octavo {

/// Where `index` goes; a bijection of {0, .., size-1} for every key. A Feistel network over the next even number of
/// bits, walked until it lands inside: at most 4 passes on average. O(1) memory. Throws InternalError unless 0 <=
/// index < size.
std::int64_t permute(std::int64_t index, std::int64_t size, std::uint64_t key);

}  // namespace octavo
