#include "octavo/dataset/permutation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "octavo/base/error.h"

using namespace octavo;

TEST_CASE("permute is a bijection for every size and key") {
  for (std::int64_t size = 1; size <= 300; ++size) {
    for (const std::uint64_t key : {0u, 1u, 77u}) {
      std::vector<int> hits(static_cast<std::size_t>(size), 0);
      for (std::int64_t i = 0; i < size; ++i) ++hits.at(static_cast<std::size_t>(permute(i, size, key)));
      REQUIRE(hits == std::vector<int>(static_cast<std::size_t>(size), 1));
    }
  }
}

TEST_CASE("permute mixes: places do not depend on the index, and keys give other orders") {
  constexpr std::int64_t kSize = 10000;
  double products = 0;
  int fixed_points = 0, equal = 0;
  for (std::int64_t i = 0; i < kSize; ++i) {
    const std::int64_t place = permute(i, kSize, 5);
    products += (static_cast<double>(i) / kSize - 0.5) * (static_cast<double>(place) / kSize - 0.5);
    fixed_points += place == i;
    equal += place == permute(i, kSize, 6);
  }
  CHECK(std::abs(products / kSize * 12) < 0.05);  // correlation; five standard deviations of a random order
  CHECK(fixed_points < 10);                       // one expected
  CHECK(equal < 10);
}

TEST_CASE("permute refuses an index outside its range and takes large sizes") {
  CHECK_THROWS_AS(permute(5, 5, 0), InternalError);
  CHECK_THROWS_AS(permute(-1, 5, 0), InternalError);
  constexpr std::int64_t kSize = (std::int64_t{1} << 40) + 1;
  const std::int64_t place = permute(kSize - 1, kSize, 9);
  CHECK(place >= 0);
  CHECK(place < kSize);
}
