#include "octavo/mesh/cluster.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// `g` ranks in each of `nodes` nodes.
GroupLinks links_of(const Accelerator& accelerator, int num_ranks, int nodes, int fewest, int most) {
  GroupLinks links;
  links.num_ranks = num_ranks;
  links.num_nodes = nodes;
  links.ranks_per_node = fewest;
  links.is_even = fewest == most;
  const Fabric& fabric = accelerator.fabric;
  if (most > 1) {
    const bool is_mesh = fabric.topology == FabricTopology::FullMesh;
    const int neighbours = std::max(fewest, 2) - 1;
    links.pair_bandwidth = fabric.pair_bandwidth.value;
    links.node_bandwidth =
        is_mesh ? std::min(neighbours * fabric.pair_bandwidth.value, fabric.bandwidth.value) : fabric.bandwidth.value;
    links.fabric_share = links.node_bandwidth / fabric.bandwidth.value;
  }
  if (nodes > 1) links.network_bandwidth = accelerator.network.bandwidth();
  return links;
}

/// Ranks of the first group that share its first node, if all nodes of all groups hold as many; 0 if they may not.
int even_ranks_per_node(const DeviceMesh& mesh, std::span<const Axis> axes, int gpus_per_node) {
  int inside = 1;
  int stride = 1;
  const std::span<const AxisSize> all = mesh.axes();
  for (std::size_t i = all.size(); i-- > 0; stride *= all[i].size) {
    const int size = all[i].size;
    if (size == 1 || std::find(axes.begin(), axes.end(), all[i].axis) == axes.end()) continue;
    if (stride % gpus_per_node == 0) continue;  // each of them in another node
    if (gpus_per_node % stride != 0) return 0;
    const int room = gpus_per_node / stride;  // steps of this axis that one node holds
    if (room % size != 0 && size % room != 0) return 0;
    inside *= std::min(room, size);
  }
  return inside;
}

}  // namespace

std::string Cluster::to_string() const {
  return cat(accelerator.name, "x", gpus_per_node, "x", num_nodes);
}

std::vector<std::string> Cluster::changes() const {
  const Accelerator& known = find_accelerator(accelerator.name);
  std::vector<std::string> changes;
  const auto value = [](const std::optional<HardwareConstant>& constant) {
    return constant ? cat(constant->value) : std::string("none");
  };
  for (const HardwareField& field : hardware_fields()) {
    const std::string before = value(field.get(known)), after = value(field.get(accelerator));
    if (before == after) continue;
    changes.push_back(cat(field.name, " ", before, " -> ", after, after == "none" ? "" : " " + field.unit));
  }
  if (known.fabric.topology != accelerator.fabric.topology) {
    changes.push_back(accelerator.fabric.topology == FabricTopology::FullMesh ? "topology switch -> full mesh"
                                                                              : "topology full mesh -> switch");
  }
  return changes;
}

GroupLinks Cluster::links(std::span<const int> ranks) const {
  internal_check(!ranks.empty(), "[mesh] the links of a group without ranks");
  if (ranks.front() < 0 || ranks.back() >= world_size()) {
    throw UsageError(cat("[mesh] rank ", ranks.front() < 0 ? ranks.front() : ranks.back(), " is not in ", to_string(),
                         ", whose ranks go from 0 to ", world_size() - 1));
  }
  int nodes = 0, fewest = 0, most = 0;
  for (std::size_t begin = 0; begin < ranks.size(); ++nodes) {
    std::size_t end = begin;
    while (end < ranks.size() && ranks[end] / gpus_per_node == ranks[begin] / gpus_per_node) ++end;
    const int here = static_cast<int>(end - begin);
    fewest = nodes == 0 ? here : std::min(fewest, here);
    most = std::max(most, here);
    begin = end;
  }
  return links_of(accelerator, static_cast<int>(ranks.size()), nodes, fewest, most);
}

GroupLinks Cluster::links(const DeviceMesh& mesh, std::span<const Axis> axes) const {
  if (mesh.world_size() > world_size()) {
    throw UsageError(cat("[mesh] \"", mesh.to_string(), "\" has ", mesh.world_size(), " ranks, and ", to_string(),
                         " has ", world_size(), " accelerators; lower a degree or add nodes"));
  }
  if (const int inside = even_ranks_per_node(mesh, axes, gpus_per_node); inside > 0) {
    int num_ranks = 1;
    for (const Axis axis : axes) num_ranks *= mesh.size(axis);
    return links_of(accelerator, num_ranks, num_ranks / inside, inside, inside);
  }
  GroupLinks worst;
  for (const std::vector<int>& group : mesh.groups(axes)) {
    const GroupLinks here = links(group);
    if (here.num_nodes > worst.num_nodes ||
        (here.num_nodes == worst.num_nodes && (worst.num_ranks == 1 || here.ranks_per_node < worst.ranks_per_node))) {
      worst = here;
    }
  }
  return worst;
}

}  // namespace octavo
