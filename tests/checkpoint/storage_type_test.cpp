#include "octavo/checkpoint/storage_type.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "octavo/base/error.h"

using namespace octavo;

namespace {

template <class Value>
std::vector<Value> decoded(StorageType type, const std::vector<std::byte>& bytes, std::size_t count) {
  std::vector<Value> out(count);
  decode(type, bytes, std::span<Value>(out));
  return out;
}

std::vector<std::byte> bytes_of(std::uint16_t bits) {
  return {std::byte(bits & 0xFF), std::byte(bits >> 8)};
}

template <class Value>
std::uint16_t as_bfloat16(Value value) {
  std::array<std::byte, 2> bytes;
  encode(StorageType::BF16, std::span<const Value>(&value, 1), bytes);
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[0]) | std::to_integer<unsigned>(bytes[1]) << 8);
}

// The value of a number with `exponent_bits` and `mantissa_bits`, by its definition.
double by_definition(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE("every name of a type is found again") {
  for (const char* name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL",
                           "F8_E5M2", "F8_E4M3", "F4"}) {
    const std::optional<StorageType> type = storage_type_from_name(name);
    REQUIRE(type);
    CHECK(storage_type_name(*type) == name);
  }
  CHECK(!storage_type_from_name("F33"));
  CHECK(!storage_type_from_name(""));
  CHECK(!is_weight_type(StorageType::I32));
  CHECK(is_weight_type(StorageType::F16));
}

TEST_CASE("each of the 65536 half and bfloat16 values is decoded exactly") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto number = static_cast<std::uint16_t>(bits);
    const std::vector<std::byte> bytes = bytes_of(number);
    wrong += !same(decoded<float>(StorageType::F16, bytes, 1)[0], by_definition(number, 5, 10));
    wrong += !same(decoded<double>(StorageType::F16, bytes, 1)[0], by_definition(number, 5, 10));
    wrong += !same(decoded<float>(StorageType::BF16, bytes, 1)[0], by_definition(number, 8, 7));
    wrong += !same(decoded<double>(StorageType::BF16, bytes, 1)[0], by_definition(number, 8, 7));
  }
  CHECK(wrong == 0);
}

TEST_CASE("each bfloat16 value survives encoding, from float and from double") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto number = static_cast<std::uint16_t>(bits);
    const double value = by_definition(number, 8, 7);
    if (std::isnan(value)) {
      wrong += !std::isnan(by_definition(as_bfloat16(std::bit_cast<float>(bits << 16)), 8, 7));
      wrong += !std::isnan(by_definition(as_bfloat16(value), 8, 7));
    } else {
      wrong += as_bfloat16(static_cast<float>(value)) != number;
      wrong += as_bfloat16(value) != number;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("encoding to bfloat16 rounds to nearest, ties to even, once") {
  CHECK(as_bfloat16(1.0f + 0x1p-8f) == 0x3F80);              // a tie: down to even
  CHECK(as_bfloat16(1.0f + 3 * 0x1p-8f) == 0x3F82);          // a tie: up to even
  CHECK(as_bfloat16(1.0f + 0x1p-8f + 0x1p-23f) == 0x3F81);   // above a tie
  CHECK(as_bfloat16(1.0 + 0x1p-8 + 0x1p-40) == 0x3F81);      // rounds to a tie in float, but lies above it
  CHECK(as_bfloat16(1.0 + 3 * 0x1p-8 - 0x1p-40) == 0x3F81);  // and below
  CHECK(as_bfloat16(-1.0 - 0x1p-8 - 0x1p-40) == 0xBF81);
  CHECK(as_bfloat16(std::numeric_limits<float>::max()) == 0x7F80);  // beyond the largest bfloat16
  CHECK(as_bfloat16(-std::numeric_limits<double>::infinity()) == 0xFF80);
}

TEST_CASE("a NaN whose set bits all lie below bfloat16 stays a NaN") {
  CHECK(as_bfloat16(std::bit_cast<float>(0x7F800001u)) == 0x7FC0);
}

TEST_CASE("data of any alignment is decoded") {
  std::vector<std::byte> bytes(1 + 3 * 8);
  const double values[] = {1.5, -2.25, 1e-300};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  std::vector<double> out(3);
  decode(StorageType::F64, std::span(bytes).subspan(1), std::span<double>(out));
  CHECK(out == std::vector<double>{1.5, -2.25, 1e-300});
}

TEST_CASE("sizes and types that do not fit are our own bug") {
  std::vector<std::byte> bytes(8);
  std::vector<float> out(3);
  CHECK_THROWS_AS(decode(StorageType::F32, bytes, std::span<float>(out)), InternalError);
  CHECK_THROWS_AS(decode(StorageType::I32, std::span(bytes).first(4), std::span<float>(out).first(1)), InternalError);
  CHECK_THROWS_AS(encode(StorageType::F16, std::span<const float>(out).first(1), std::span(bytes).first(2)),
                  InternalError);
  CHECK_THROWS_AS(first_not_finite(StorageType::F32, std::span(bytes).first(3)), InternalError);
}

TEST_CASE("the first NaN or infinity is found wherever it stands, and large finite values are let pass") {
  std::mt19937_64 random(7);
  for (const StorageType type : {StorageType::F64, StorageType::F32, StorageType::F16, StorageType::BF16}) {
    const auto width = static_cast<std::size_t>(storage_bits(type)) / 8;
    for (const std::size_t count : {0u, 1u, 7u, 4096u, 10'001u}) {
      CAPTURE(count);
      // All bits set but the lowest of the exponent: the largest finite magnitude.
      const std::uint64_t exponent_bit = type == StorageType::F64   ? 1ull << 52
                                         : type == StorageType::F32 ? 1ull << 23
                                         : type == StorageType::F16 ? 1ull << 10
                                                                    : 1ull << 7;
      std::vector<std::byte> bytes(count * width);
      const auto put = [&](std::size_t i, std::uint64_t bits) { std::memcpy(bytes.data() + i * width, &bits, width); };
      for (std::size_t i = 0; i < count; ++i) put(i, ~exponent_bit);
      CHECK(first_not_finite(type, bytes) == std::nullopt);
      if (count == 0) continue;
      const std::size_t place = random() % count;
      put(place, ~std::uint64_t{0});                                                  // a NaN
      if (place + 1 < count) put(place + 1, ~std::uint64_t{0} - (exponent_bit - 1));  // -infinity behind it
      CHECK(first_not_finite(type, bytes) == static_cast<std::int64_t>(place));
      put(place, 0);
      if (place + 1 < count) CHECK(first_not_finite(type, bytes) == static_cast<std::int64_t>(place + 1));
    }
  }
}
