#include "octavo/proof/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace octavo;

namespace {
NamedTensors two_tensors(std::vector<double> a, std::vector<double> b) {
  return {{"a", "b"}, {std::move(a), std::move(b)}};
}
}  // namespace

TEST_CASE("the worst tensor is named and measured against its own largest entry") {
  const ProofRow row =
      compare_tensors("x", two_tensors({1, 100.5}, {0.01, 0.03}), two_tensors({1, 100}, {0.01, 0.02}), 0.1, true);
  CHECK(row.worst_tensor == "b");
  CHECK(row.distance == doctest::Approx(0.5));
  CHECK_FALSE(row.passed);
}

TEST_CASE("a NaN never passes") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(compare_scalars("x", {nan}, {nan}, 1e9, true).passed);
  CHECK_FALSE(compare_tensors("x", two_tensors({nan}, {1}), two_tensors({1}, {1}), 1e9, false).passed);
  for (const ProofRow& row : compare_adam_weights("x", two_tensors({nan}, {1}), two_tensors({1}, {1}), 1, 1e9)) {
    CHECK_FALSE(row.passed);
  }
}

TEST_CASE("equal runs pass with distance zero, also where everything is zero") {
  const NamedTensors zero = two_tensors({0, 0}, {});
  CHECK(compare_tensors("x", zero, zero, 0, true).passed);
  CHECK(compare_tensors("x", zero, zero, 0, true).distance == 0);
}

TEST_CASE("a tensor that is zero but for rounding has no scale of its own") {
  const NamedTensors expected = two_tensors({1.0}, {1e-17}), rounded = two_tensors({1.0}, {-3e-17});
  CHECK_FALSE(compare_tensors("x", rounded, expected, 1e-10, true).passed);
  CHECK(compare_tensors("x", rounded, expected, 1e-10, true, 4 * 0x1p-53).passed);
  CHECK_FALSE(compare_tensors("x", two_tensors({1.0}, {1e-14}), expected, 1e-10, true, 4 * 0x1p-53).passed);
}

TEST_CASE("an entry whose gradient is rounding noise may go the other way, within the far limit") {
  const NamedTensors expected = two_tensors({1, 1}, {}), moved = two_tensors({1, 1.001}, {});
  const NamedTensors quietest = two_tensors({1, 1e-9}, {});
  CHECK_FALSE(compare_adam_weights("w", moved, expected, 1e-5, 2e-3)[1].passed);
  CHECK(compare_adam_weights("w", moved, expected, 1e-5, 2e-3, &quietest, 1e-7)[1].passed);
  CHECK_FALSE(compare_adam_weights("w", two_tensors({1, 1.1}, {}), expected, 1e-5, 2e-3, &quietest, 1e-7)[0].passed);
}

TEST_CASE("a report without rows proves nothing") {
  CHECK_FALSE(ProofReport{}.passed());
}

TEST_CASE("one weight in a thousand may move by the learning rate, two may not") {
  std::vector<double> expected(2000, 1.0), one = expected, many = expected;
  one[7] += 1e-3;
  for (int i = 0; i < 3; ++i) many[i] += 1e-3;
  const auto passed = [&](const std::vector<double>& values) {
    bool all = true;
    for (const ProofRow& row : compare_adam_weights("w", {{"a"}, {values}}, {{"a"}, {expected}}, 1e-5, 2e-3))
      all = all && row.passed;
    return all;
  };
  CHECK(passed(one));
  CHECK_FALSE(passed(many));
}
