#include "octavo/ops/rope.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numbers>

#include "octavo/base/error.h"
#include "ops/ops_testing.h"

using namespace octavo;
using namespace octavo::testing;

namespace {

at::Tensor positions(std::int64_t first, std::int64_t count) {
  return at::arange(first, first + count, at::kLong);
}

}  // namespace

TEST_CASE("a rope table holds cos and sin of position times inverse frequency") {
  const std::int64_t head_dim = 8;
  const ops::RopeTable table = ops::rope_table({}, head_dim, positions(5, 3), at::kDouble);
  CHECK(name_of(table.cos.scalar_type()) == name_of(at::kDouble));
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t j = 0; j < head_dim / 2; ++j) {
      const double angle = static_cast<double>(5 + t) * std::pow(10000.0, -2.0 * static_cast<double>(j) / 8.0);
      CHECK(table.cos[t][j].item<double>() == doctest::Approx(std::cos(angle)).epsilon(1e-12));
      CHECK(table.sin[t][j].item<double>() == doctest::Approx(std::sin(angle)).epsilon(1e-12));
    }
  }
  CHECK(name_of(ops::rope_table({}, head_dim, positions(0, 2), at::kBFloat16).cos.scalar_type()) ==
        name_of(at::kFloat));
}

TEST_CASE("Llama 3's scaling keeps short waves, slows long ones and blends between") {
  const RopeSpec spec{
      .theta = 500000.0,
      .llama3 = RopeSpec::Llama3{
          .factor = 8.0, .low_freq_factor = 1.0, .high_freq_factor = 4.0, .original_max_positions = 8192}};
  const std::int64_t head_dim = 128;
  const at::Tensor sine = ops::rope_table(spec, head_dim, positions(1, 1), at::kDouble).sin[0];
  int kept = 0, slowed = 0, blended = 0;
  for (std::int64_t j = 0; j < head_dim / 2; ++j) {
    const double frequency = std::pow(500000.0, -2.0 * static_cast<double>(j) / 128.0);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double expected = frequency;
    if (wavelength > 8192.0 / 1.0) {
      expected = frequency / 8.0;
      ++slowed;
    } else if (wavelength >= 8192.0 / 4.0) {
      const double m = (8192.0 / wavelength - 1.0) / (4.0 - 1.0);
      expected = frequency * ((1 - m) / 8.0 + m);
      ++blended;
    } else {
      ++kept;
    }
    CHECK(std::asin(std::min(1.0, sine[j].item<double>())) == doctest::Approx(expected).epsilon(1e-9));
  }
  CHECK(kept > 0);
  CHECK(blended > 0);
  CHECK(slowed > 0);
}

TEST_CASE("the rotation's fast form equals the naive one for every dtype and for strided heads") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t head_dim : {2, 6, 64}) {
      CAPTURE(name_of(dtype));
      CAPTURE(head_dim);
      const at::Tensor qkv = values({7, 2, 5, head_dim}, dtype, 1);  // [T, G, A / G + 2, D]
      const ops::RopeTable table = ops::rope_table({}, head_dim, positions(100, 7), dtype);
      for (const at::Tensor& heads : {qkv.narrow(2, 0, 3), qkv.select(2, 3), qkv.transpose(0, 2).select(0, 1)}) {
        const at::Tensor in_token_order = heads.size(0) == 7 ? heads : heads.transpose(0, 1);
        for (const bool inverse : {false, true}) {
          const at::Tensor fast = ops::rope(in_token_order, table, inverse);
          CHECK(fast.is_contiguous());
          CHECK(distance(fast, ops::rope_naive(in_token_order, table, inverse)) <= tolerance_of(dtype));
        }
      }
    }
  }
}

TEST_CASE("the inverse rotation undoes the rotation and lands in its place") {
  const at::Tensor q = values({9, 6, 16}, at::kDouble, 1);
  const ops::RopeTable table = ops::rope_table({}, 16, positions(3, 9), at::kDouble);
  const at::Tensor rotated = ops::rope(q, table, false);
  CHECK(distance(rotated.pow(2).sum(-1), q.pow(2).sum(-1)) <= kFloat64Tolerance);
  at::Tensor dqkv = at::full({9, 2, 5, 16}, 7.0, at::kDouble);
  ops::rope_into(dqkv.narrow(2, 0, 3), rotated, table, true);
  CHECK(distance(dqkv.narrow(2, 0, 3).reshape({9, 6, 16}), q) <= kFloat64Tolerance);
  CHECK(dqkv.narrow(2, 3, 2).eq(7.0).all().item<bool>());
  ops::rope_into(rotated, rotated, table, true);
  CHECK(distance(rotated, q) <= kFloat64Tolerance);
}

TEST_CASE("the rotation of no tokens is legal, of a table for other tokens an error") {
  const ops::RopeTable none = ops::rope_table({}, 8, positions(0, 0), at::kFloat);
  CHECK(ops::rope(at::empty({0, 3, 8}), none, false).size(0) == 0);
  CHECK_THROWS_AS(ops::rope(at::empty({2, 3, 8}), none, false), InternalError);
}
