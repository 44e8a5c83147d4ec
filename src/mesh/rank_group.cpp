#include "octavo/mesh/rank_group.h"

#include <array>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

std::string group_name(std::span<const Axis> axes) {
  if (axes.empty()) return "none";
  if (axes.size() == kAllAxes.size()) return "world";
  std::vector<std::string> names;
  for (const Axis axis : axes) names.emplace_back(axis_name(axis));
  return join(names, "+");
}

std::string cut_name(const DeviceMesh& mesh, const std::string& group) {
  return cat("\"", mesh.to_string(), "\" over ", group);
}

}  // namespace

RankGroup rank_group(const DeviceMesh& mesh, int rank, std::span<const Axis> axes) {
  const std::string name = group_name(axes);
  return {name, mesh.group(rank, axes), cut_name(mesh, name)};
}

RankGroup neighbour_group(const DeviceMesh& mesh, int rank, Axis axis, int size) {
  internal_check(size >= 1 && mesh.size(axis) % size == 0, "[mesh] neighbours that do not fill their axis");
  const std::vector<int> line = mesh.group(rank, std::array{axis});
  const int first = mesh.index(rank, axis) / size * size;
  const bool is_whole = size == mesh.size(axis);
  const std::string name = is_whole ? std::string(axis_name(axis)) : cat(axis_name(axis), "/", size);
  return {name, {line.begin() + first, line.begin() + first + size}, cut_name(mesh, name)};
}

}  // namespace octavo
