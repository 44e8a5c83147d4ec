#include <array>
#include <optional>

#include "octavo/base/error.h"
#include "octavo/mesh/cluster.h"
#include "octavo/trace/cost.h"
#include "validation/answers.h"
#include "validation/golden_case.h"

namespace octavo {
namespace {

using nlohmann::json;

int ranks_of(const json& input, const char* key) {
  return static_cast<int>(count(input, key, 1 << 20));
}

json number(const std::optional<HardwareConstant>& constant) {
  return constant ? json(constant->value) : json();
}

/// Files describe a topology in more words than its name.
json topology(const Fabric& fabric, const json& said) {
  const bool says_mesh = said.is_string() && said.get<std::string>().starts_with("full mesh");
  const bool is_mesh = fabric.topology == FabricTopology::FullMesh;
  return says_mesh == is_mesh ? said : json(is_mesh ? "full mesh" : "switch");
}

json catalogue(const json& input, const json& expect) {
  const Accelerator& accelerator = find_accelerator(input.at("accelerator").get<std::string>());
  const Fabric& fabric = accelerator.fabric;
  const json their_fabric = expect.value("fabric", json::object());
  json measured{{"bf16", number(accelerator.measured_bf16_flops)}, {"fp8", number(accelerator.measured_fp8_flops)}};
  return {{"peak_dense_bf16_flops", number(accelerator.bf16_flops)},
          {"peak_dense_fp8_flops", number(accelerator.fp8_flops)},
          {"hbm_bytes", accelerator.memory_bytes.value},
          {"hbm_bytes_per_s", accelerator.memory_bandwidth.value},
          {"fabric",
           {{"topology", topology(fabric, their_fabric.value("topology", json()))},
            {"gpus", fabric.ranks.value},
            {"per_gpu_each_way_bytes_per_s", fabric.bandwidth.value},
            {"per_pair_each_way_bytes_per_s", fabric.pair_bandwidth.value},
            {"links_per_gpu", fabric.bandwidth.value / fabric.pair_bandwidth.value},
            {"link", not_ours()}}},
          {"network",
           {{"nics_per_node", accelerator.network.nics.value},
            {"nic_bits_per_s", accelerator.network.nic_bits.value},
            {"per_gpu_each_way_bytes_per_s", accelerator.network.bandwidth()},
            {"note", not_ours()}}},
          {"measured_best_gemm_flops", measured}};
}

json part_of_fabric(const json& input) {
  const Accelerator& accelerator = find_accelerator(input.at("accelerator").get<std::string>());
  const int size = ranks_of(input, "group"), whole = static_cast<int>(accelerator.fabric.ranks.value);
  if (whole % size != 0) throw UsageError("its group does not divide the fabric");
  const Cluster cluster{accelerator, whole, 1};
  const GroupLinks links =
      cluster.links(DeviceMesh({{Axis::Data, whole / size}, {Axis::Tensor, size}}), std::array{Axis::Tensor});
  return {{"usable_each_way_bytes_per_s", links.node_bandwidth}, {"share_of_fabric", links.fabric_share}};
}

json hierarchical(const json& input) {
  const int inside = ranks_of(input, "gpus_per_node"), nodes = ranks_of(input, "nodes");
  const Bytes message = input.at("payload_bytes");
  if (message < 0) throw UsageError("its payload is negative");
  const HierarchicalCost cost = hierarchical_cost(Collective::AllReduce, inside, nodes, message);
  const Bytes flat = collective_cost(Collective::AllReduce, Algorithm::Ring, inside * nodes, message).sent;
  return {{"intra_node_bytes_per_gpu", cost.inside.sent},
          {"inter_node_bytes_per_gpu", cost.outside.sent},
          {"inter_over_flat_busbw_volume", static_cast<double>(cost.outside.sent) / static_cast<double>(flat)}};
}

json factors(const json& input) {
  json out;
  const int ranks = ranks_of(input, "ranks");
  for (const Collective kind : kAllCollectives) out[std::string(collective_name(kind))] = bus_factor(kind, ranks);
  out["p2p"] = bus_factor(Collective::Send, ranks);
  return out;
}

}  // namespace

Answer hardware_answer() {
  return [](const json& item) -> json {
    const json &input = item["input"], &expect = item["expect"];
    if (expect.contains("hbm_bytes")) return catalogue(input, expect);
    if (expect.contains("share_of_fabric")) return part_of_fabric(input);
    if (expect.contains("inter_node_bytes_per_gpu")) return hierarchical(input);
    if (expect.contains("all_gather") && input.contains("ranks")) return factors(input);
    return {};
  };
}

}  // namespace octavo
