// What the elements of a span are: the dtypes that can be summed over ranks.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

enum class WireType : std::uint8_t { F32, F64, BF16, I64 };

constexpr std::int64_t wire_bytes(WireType type) {
  switch (type) {
    case WireType::F32:
      return 4;
    case WireType::BF16:
      return 2;
    case WireType::F64:
    case WireType::I64:
      return 8;
  }
  return 0;
}

constexpr std::string_view wire_name(WireType type) {
  switch (type) {
    case WireType::F32:
      return "float32";
    case WireType::F64:
      return "float64";
    case WireType::BF16:
      return "bfloat16";
    case WireType::I64:
      return "int64";
  }
  return "";
}

}  // namespace octavo
