#include "comm/threads/group_name.h"

#include <vector>

#include "octavo/base/text.h"

namespace octavo {

std::string group_name(std::span<const Axis> axes) {
  if (axes.empty()) return "none";
  std::vector<std::string> names;
  for (const Axis axis : axes) names.emplace_back(axis_name(axis));
  return join(names, "+");
}

}  // namespace octavo
