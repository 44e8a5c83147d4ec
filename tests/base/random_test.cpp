#include "octavo/base/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

using namespace octavo;

TEST_CASE("the bits are those of Philox4x32-10") {
  // The published known answer for key 0 and counter 0, two draws of 64 bits.
  CHECK(CounterRandom(0).bits(0) == 0xE169C58D6627E8D5u);
  CHECK(CounterRandom(0).bits(1) == 0x9B00DBD8BC57AC4Cu);
  // Another implementation's answer (checked against all three published ones) where every word of key and block
  // matters.
  CHECK(CounterRandom(0x0123456789ABCDEFu).bits(0x89ABCDEF01234567u) == 0x0506B03DEF533473u);
  CHECK(CounterRandom(0x0123456789ABCDEFu).bits(0x89ABCDEF01234566u) == 0x8631B3B29EEB514Bu);
}

TEST_CASE("normals are the inverse distribution function of their bits") {
  // Values with 20 digits from arbitrary-precision arithmetic: centre, both tails, and one beyond exp(-25).
  const CounterRandom random(0x0123456789ABCDEFu);
  const struct {
    std::uint64_t counter;
    double normal;
  } known[] = {{0, 0.744384285847782224},
               {1, -0.053687885730691836926},
               {2, -0.46418012177781564233},
               {5, -1.2604238104187162312},
               {60627, -4.5115079358925070367},
               {46714, 4.2505045353510864807},
               {34388376480, -6.7934905021707457924}};
  for (const auto& [counter, normal] : known) {
    CHECK(std::abs(random.normal(counter) - normal) <= 1e-14 * std::abs(normal));
  }
}

TEST_CASE("uniforms fill [0, 1) evenly") {
  const CounterRandom random(7);
  std::vector<int> in_tenth(10, 0);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = random.uniform(i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    ++in_tenth[static_cast<std::size_t>(u * 10)];
  }
  for (const int count : in_tenth) CHECK(std::abs(count - 10000) < 500);  // five standard deviations
}

TEST_CASE("below reaches every value under its bound and no other") {
  const CounterRandom random(8);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(random.below(7, i));
  CHECK(seen == std::set<std::uint64_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(random.below(1, 3) == 0);
}

TEST_CASE("normals have the moments of the standard normal distribution") {
  const CounterRandom random(hash_key(3, "moments"));
  constexpr int kCount = 1000000;
  double sum = 0, squares = 0, fourth = 0, products = 0, last = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal(static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    products += x * last;
    last = x;
  }
  // Bounds are five standard deviations of each mean.
  CHECK(std::abs(sum / kCount) < 0.005);
  CHECK(std::abs(squares / kCount - 1) < 0.0071);
  CHECK(std::abs(fourth / kCount - 3) < 0.05);
  CHECK(std::abs(products / kCount) < 0.005);
}

TEST_CASE("a bulk fill equals the single draws wherever it begins and ends") {
  const CounterRandom random(hash_key(1, "weight"));
  for (const std::uint64_t first : {0u, 1u, 511u, 4096u}) {
    for (const std::size_t size : {0u, 1u, 2u, 511u, 512u, 513u, 1500u}) {
      std::vector<float> filled(size, -1.0f), single(size);
      random.fill_normal(first, filled, 0.02);
      for (std::size_t i = 0; i < size; ++i) single[i] = static_cast<float>(0.02 * random.normal(first + i));
      CHECK(filled == single);
    }
  }
}

TEST_CASE("keys differ by seed and by name") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "ba", "model.norm.weight"}) keys.insert(hash_key(seed, name));
  }
  CHECK(keys.size() == 600);
  CHECK(hash_key(5, "a") == hash_key(5, "a"));
}
