// What the elements of a span are: the dtypes that can be summed over ranks.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

enum class ElementType : std::uint8_t { F32, F64, BF16, I64 };

constexpr std::int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::F32:
      return 4;
    case ElementType::BF16:
      return 2;
    case ElementType::F64:
    case ElementType::I64:
      return 8;
  }
  return 0;
}

constexpr std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::F32:
      return "float32";
    case ElementType::F64:
      return "float64";
    case ElementType::BF16:
      return "bfloat16";
    case ElementType::I64:
      return "int64";
  }
  return "";
}

}  // namespace octavo
