// Units in names: a quantity's type says what it counts, its text says it with a unit.
#pragma once

#include <cstdint>
#include <string>

namespace octavo {

using Bytes = std::int64_t;
using Seconds = double;
using Flops = double;

/// "0 B", "12.3 kB", "4.5 MB", "1.2 GB": powers of ten.
std::string format_bytes(Bytes bytes);

/// "850 us", "12.3 ms", "4.56 s", "3 min 20 s".
std::string format_seconds(Seconds seconds);

/// "12 FLOP", "1.9 GFLOP".
std::string format_flops(Flops flops);

/// "1.9 GFLOP/s", "2.3 TFLOP/s".
std::string format_flop_rate(double flops_per_second);

}  // namespace octavo
