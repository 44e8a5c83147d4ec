#include "comm/threads/sum.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace octavo {
namespace {

template <class T>
std::vector<const std::byte*> pointers(const std::vector<std::vector<T>>& sources) {
  std::vector<const std::byte*> result;
  for (const auto& source : sources) result.push_back(reinterpret_cast<const std::byte*>(source.data()));
  return result;
}

std::uint16_t bfloat(float value) {
  // Truncation: exact for the values used here.
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

float widened(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

TEST_CASE("sums add ranks in ascending order, also where the output is one of the sources") {
  for (int num_ranks = 1; num_ranks <= 5; ++num_ranks) {
    for (const std::int64_t count : {0, 1, 7, 1024, 3001}) {
      for (int target = 0; target < num_ranks; ++target) {
        std::vector<std::vector<float>> sources(num_ranks, std::vector<float>(count));
        std::vector<float> expected(count);
        for (std::int64_t i = 0; i < count; ++i) {
          // Large and small addends: another order would give other bits.
          for (int rank = 0; rank < num_ranks; ++rank) sources[rank][i] = std::ldexp(1.0f + 0.001f * i, 7 * rank);
          expected[i] = sources[0][i];
          for (int rank = 1; rank < num_ranks; ++rank) expected[i] += sources[rank][i];
        }
        sum_over_ranks(WireType::F32, reinterpret_cast<std::byte*>(sources[target].data()), pointers(sources), count);
        CHECK(sources[target] == expected);
      }
    }
  }
}

TEST_CASE("bfloat16 is summed in float32 and rounded once, to nearest even") {
  // 256 + 1 + 1 is 258 when rounded once; rounding in between would lose both ones.
  std::vector<std::vector<std::uint16_t>> sources = {{bfloat(256)}, {bfloat(1)}, {bfloat(1)}};
  std::uint16_t out = 0;
  sum_over_ranks(WireType::BF16, reinterpret_cast<std::byte*>(&out), pointers(sources), 1);
  CHECK(widened(out) == 258);
  // 257 lies half way between 256 and 258: the even mantissa wins. So does 259, between 258 and 260.
  const std::vector<std::vector<std::uint16_t>> low = {{bfloat(256), bfloat(258)}, {bfloat(1), bfloat(1)}};
  std::vector<std::uint16_t> ties(2);
  sum_over_ranks(WireType::BF16, reinterpret_cast<std::byte*>(ties.data()), pointers(low), 2);
  CHECK(widened(ties[0]) == 256);
  CHECK(widened(ties[1]) == 260);
}

TEST_CASE("bfloat16 sums keep infinities and NaNs what they are") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<std::uint16_t>> sources = {{bfloat(infinity), bfloat(infinity)},
                                                           {bfloat(1), bfloat(-infinity)}};
  std::vector<std::uint16_t> out(2);
  sum_over_ranks(WireType::BF16, reinterpret_cast<std::byte*>(out.data()), pointers(sources), 2);
  CHECK(widened(out[0]) == infinity);
  CHECK(std::isnan(widened(out[1])));
}

TEST_CASE("int64 sums are exact beyond the range of a double") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const std::vector<std::vector<std::int64_t>> sources = {{big}, {2}, {-1}};
  std::int64_t out = 0;
  sum_over_ranks(WireType::I64, reinterpret_cast<std::byte*>(&out), pointers(sources), 1);
  CHECK(out == big + 1);
}

}  // namespace
}  // namespace octavo
