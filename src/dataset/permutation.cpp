#include "octavo/dataset/permutation.h"

#include <bit>

#include "octavo/base/error.h"
#include "octavo/base/random.h"
#include "octavo/base/text.h"

namespace octavo {

std::int64_t permute(std::int64_t index, std::int64_t size, std::uint64_t key) {
  internal_check(index >= 0 && index < size, cat("[dataset] permute(", index, ") of ", size, " elements"));
  constexpr std::uint64_t kRounds = 6;
  const CounterRandom random(key);
  const int half = (std::bit_width(static_cast<std::uint64_t>(size - 1)) + 1) / 2;  // bits in each half of the network
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto place = static_cast<std::uint64_t>(index);
  // Each pass is a bijection of [0, 4^half), so following the cycle of an index from inside returns inside.
  do {
    std::uint64_t left = place >> half, right = place & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t swapped = left ^ (random.bits(right * kRounds + round) & mask);
      left = right;
      right = swapped;
    }
    place = left << half | right;
  } while (place >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(place);
}

}  // namespace octavo
