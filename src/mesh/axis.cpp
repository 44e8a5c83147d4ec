#include "octavo/mesh/axis.h"

#include "octavo/base/error.h"

namespace octavo {

std::string_view axis_name(Axis axis) {
  switch (axis) {
    case Axis::Pipeline:
      return "pipeline";
    case Axis::Data:
      return "data";
    case Axis::Expert:
      return "expert";
    case Axis::Sequence:
      return "sequence";
    case Axis::Fold:
      return "fold";
    case Axis::Tensor:
      return "tensor";
  }
  throw InternalError("[mesh] an Axis outside its enumeration has no name");
}

std::optional<Axis> axis_from_name(std::string_view name) {
  for (const Axis axis : kAllAxes) {
    if (axis_name(axis) == name) return axis;
  }
  return std::nullopt;
}

}  // namespace octavo
