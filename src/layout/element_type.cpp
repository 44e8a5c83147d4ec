#include "octavo/layout/element_type.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::string_view element_type_name(ElementType type) {
  switch (type) {
    case ElementType::Float32:
      return "fp32";
    case ElementType::BFloat16:
      return "bf16";
    case ElementType::Float64:
      return "fp64";
  }
  throw InternalError("[layout] unknown element type");
}

ElementType parse_element_type(std::string_view name) {
  for (const ElementType type : {ElementType::Float32, ElementType::BFloat16, ElementType::Float64}) {
    if (name == element_type_name(type)) return type;
  }
  throw UsageError(cat("[layout] dtype \"", name, "\" is not known; use fp32, bf16 or fp64"));
}

Bytes element_bytes(ElementType type) {
  switch (type) {
    case ElementType::Float32:
      return 4;
    case ElementType::BFloat16:
      return 2;
    case ElementType::Float64:
      return 8;
  }
  throw InternalError("[layout] unknown element type");
}

ElementType sum_type(ElementType compute) {
  return compute == ElementType::Float64 ? ElementType::Float64 : ElementType::Float32;
}

int num_optimizer_tensors(ElementType compute) {
  return sum_type(compute) == compute ? 2 : 3;
}

}  // namespace octavo
