#include "octavo/base/units.h"

#include <doctest/doctest.h>

#include <limits>

using namespace octavo;

TEST_CASE("bytes are written with one digit and a decimal prefix") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(12'300) == "12.3 kB");
  CHECK(format_bytes(4'500'000) == "4.5 MB");
  CHECK(format_bytes(1'200'000'000) == "1.2 GB");
  CHECK(format_bytes(-2'000) == "-2.0 kB");
  CHECK(format_bytes(std::numeric_limits<Bytes>::max()) == "9.2 EB");
}

TEST_CASE("a value that rounds up to a thousand takes the next prefix") {
  CHECK(format_bytes(999'960) == "1.0 MB");
  CHECK(format_bytes(999'940) == "999.9 kB");
}

TEST_CASE("seconds choose their unit by size") {
  CHECK(format_seconds(0) == "0 s");
  CHECK(format_seconds(850e-6) == "850 us");
  CHECK(format_seconds(12.3e-3) == "12.3 ms");
  CHECK(format_seconds(4.56) == "4.56 s");
  CHECK(format_seconds(200) == "3 min 20 s");
  CHECK(format_seconds(59.999) == "1 min 0 s");
  CHECK(format_seconds(7'260) == "2 h 1 min");
  CHECK(format_seconds(-0.5) == "-500.0 ms");
}

TEST_CASE("FLOPs carry a decimal prefix") {
  CHECK(format_flops(0) == "0 FLOP");
  CHECK(format_flops(999) == "999 FLOP");
  CHECK(format_flops(1.94e9) == "1.9 GFLOP");
}

TEST_CASE("FLOP rates carry a decimal prefix") {
  CHECK(format_flop_rate(1.9e9) == "1.9 GFLOP/s");
  CHECK(format_flop_rate(2.3e12) == "2.3 TFLOP/s");
  CHECK(format_flop_rate(12) == "12.0 FLOP/s");
}
