// The types a model is computed in.
#pragma once

#include <string_view>

#include "octavo/base/units.h"

namespace octavo {

enum class ElementType { Float32, BFloat16, Float64 };

/// "fp32", "bf16", "fp64".
std::string_view element_type_name(ElementType type);
/// Throws UsageError naming the three.
ElementType parse_element_type(std::string_view name);
Bytes element_bytes(ElementType type);
/// The type of master weights, moments and gradient sums: at least float32.
ElementType sum_type(ElementType compute);
/// Tensors of the sum type that the optimizer keeps per element: two moments, and masters where the weights are
/// narrower.
int num_optimizer_tensors(ElementType compute);

}  // namespace octavo
