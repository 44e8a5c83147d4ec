#include "octavo/mesh/cluster.h"

#include <array>

#include "golden_cases.h"

using namespace octavo;

namespace {

std::string refusal(const std::string& text) {
  try {
    read_cluster(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string json_refusal(const std::string& text) {
  try {
    parse_cluster_json(text, "c.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& words) {
  return message.find(words) != std::string::npos && message.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("a cluster is written as its accelerator, how many per node, and nodes") {
  struct Example {
    std::string text, written;
    int world_size;
  };
  for (const Example& one : std::vector<Example>{{"H100x8x16", "H100x8x16", 128},
                                                 {"H100x8", "H100x8x1", 8},
                                                 {"h100-sxmx8x2", "H100x8x2", 16},
                                                 {"GB200x72x2", "GB200x72x2", 144},
                                                 {"MI300Xx8x128", "MI300Xx8x128", 1024},
                                                 {"mi300xx8", "MI300Xx8x1", 8},
                                                 {"A100-40x4x3", "A100-40x4x3", 12}}) {
    CAPTURE(one.text);
    const Cluster cluster = read_cluster(one.text);
    CHECK(cluster.to_string() == one.written);
    CHECK(cluster.world_size() == one.world_size);
    CHECK(read_cluster(cluster.to_string()).to_string() == one.written);
  }
}

TEST_CASE("counts that are no numbers from one are refused in one line") {
  CHECK(says(refusal("H100x0"), "\"0\""));
  CHECK(says(refusal("H100x8x0"), "number of nodes"));
  CHECK(says(refusal("H100x-8"), "\"-8\""));
  CHECK(says(refusal("H100x8x-1"), "\"-1\""));
  CHECK(says(refusal("H100x8x99999999999999999999"), "too many"));
  CHECK(says(refusal("H100x8x1000001"), "at most 1,000,000"));
  CHECK(says(refusal("H100x8x1000000"), "more than 1,000,000"));
  CHECK(says(refusal("H100x8xmany"), "\"many\""));
  CHECK(says(refusal("H100x8.5"), "\"8.5\""));
  CHECK(says(refusal("H100x8x"), "number of nodes is \"\""));
  CHECK(says(refusal("H100x8x2x2"), "3 counts"));
  CHECK(says(refusal("H100"), "write H100x8"));
  CHECK(says(refusal("H200x"), "\"\""));
  CHECK(says(refusal(""), "not in the catalogue"));
  CHECK(says(refusal("x8"), "not in the catalogue"));
  CHECK(says(refusal("H10x8"), "did you mean H100?"));
  CHECK(says(refusal("H100\nx8"), "not in the catalogue"));
}

TEST_CASE("a node is no larger than what its fabric joins") {
  CHECK(says(refusal("H100x16"), "joins at most 8"));
  CHECK(refusal("GB200x72").empty());
  CHECK(says(refusal("GB200x73"), "joins at most 72"));
}

TEST_CASE("a group in a full mesh reaches as many links as it has other ranks, behind a switch all bandwidth") {
  for (const GoldenCase& one : golden_cases("hardware", "mesh.group.")) {
    CAPTURE(one.id);
    const std::string name = find_accelerator(one.input.at("accelerator").get<std::string>()).name;
    const int size = one.input.at("group");
    const Cluster cluster = read_cluster(name + "x8");
    const GroupLinks links =
        cluster.links(DeviceMesh({{Axis::Data, 8 / size}, {Axis::Tensor, size}}), std::array{Axis::Tensor});
    CHECK(agrees(links.node_bandwidth, one.expect.at("usable_each_way_bytes_per_s").get<double>(), one.tolerance));
    CHECK(agrees(links.fabric_share, one.expect.at("share_of_fabric").get<double>(), one.tolerance));
  }
  const GroupLinks pair = read_cluster("H100x8").links(DeviceMesh({{Axis::Tensor, 2}}), std::array{Axis::Tensor});
  CHECK(pair.node_bandwidth == 450e9);
  CHECK(pair.fabric_share == 1);
}

TEST_CASE("an inner axis stays inside a node, an outer one leaves it by the NIC of each rank") {
  const Cluster cluster = read_cluster("H100x8x4");
  const DeviceMesh mesh({{Axis::Data, 4}, {Axis::Fold, 2}, {Axis::Tensor, 4}});
  const GroupLinks tensor = cluster.links(mesh, std::array{Axis::Tensor});
  CHECK(tensor.num_nodes == 1);
  CHECK(tensor.network_bandwidth == 0);
  const GroupLinks data = cluster.links(mesh, std::array{Axis::Data});
  CHECK(data.num_nodes == 4);
  CHECK(data.ranks_per_node == 1);
  CHECK(data.node_bandwidth == 0);
  CHECK(data.network_bandwidth == 50e9);
  const GroupLinks both = cluster.links(mesh, std::array{Axis::Data, Axis::Fold});
  CHECK(both.num_ranks == 8);
  CHECK(both.num_nodes == 4);
  CHECK(both.ranks_per_node == 2);
  CHECK(both.is_even);
  const GroupLinks none = cluster.links(mesh, std::array{Axis::Expert});
  CHECK(none.num_ranks == 1);
  CHECK(none.node_bandwidth == 0);
}

TEST_CASE("links by strides are those of the group that is spread furthest, whatever the mesh") {
  for (const std::string name : {"H100x8x16", "MI300Xx6x16", "GB200x72x2", "H100x3x40"}) {
    const Cluster cluster = read_cluster(name);
    for (const DeviceMesh& mesh :
         {DeviceMesh({{Axis::Pipeline, 2}, {Axis::Data, 3}, {Axis::Tensor, 4}}),
          DeviceMesh({{Axis::Data, 5}, {Axis::Fold, 3}, {Axis::Tensor, 2}}),
          DeviceMesh({{Axis::Tensor, 4}, {Axis::Sequence, 2}, {Axis::Data, 12}}),
          DeviceMesh(
              {{Axis::Pipeline, 2}, {Axis::Data, 2}, {Axis::Sequence, 2}, {Axis::Fold, 2}, {Axis::Tensor, 4}})}) {
      for (unsigned bits = 0; bits < 1u << kAllAxes.size(); ++bits) {
        std::vector<Axis> axes;
        for (std::size_t i = 0; i < kAllAxes.size(); ++i) {
          if (bits >> i & 1u) axes.push_back(kAllAxes[i]);
        }
        CAPTURE(name);
        CAPTURE(mesh.to_string());
        CAPTURE(bits);
        const GroupLinks fast = cluster.links(mesh, axes);
        int most_nodes = 0;
        bool is_among = false;
        for (const std::vector<int>& group : mesh.groups(axes)) {
          const GroupLinks slow = cluster.links(group);
          most_nodes = std::max(most_nodes, slow.num_nodes);
          is_among = is_among || slow == fast;
        }
        CHECK(fast.num_nodes == most_nodes);
        CHECK(is_among);
      }
    }
  }
}

TEST_CASE("a group that straddles nodes unevenly says so") {
  const Cluster cluster = read_cluster("H100x8x2");
  const std::vector<int> ranks = {6, 7, 8};
  const GroupLinks links = cluster.links(ranks);
  CHECK(links.num_nodes == 2);
  CHECK(links.ranks_per_node == 1);
  CHECK(!links.is_even);
}

TEST_CASE("a mesh larger than its cluster is refused") {
  const Cluster cluster = read_cluster("H100x8x2");
  CHECK_THROWS_AS(cluster.links(DeviceMesh({{Axis::Data, 17}}), std::array{Axis::Data}), UsageError);
  CHECK_THROWS_AS(cluster.links(std::vector<int>{15, 16}), UsageError);
  CHECK_THROWS_AS(cluster.links(std::vector<int>{-1, 3}), UsageError);
}

TEST_CASE("a JSON file replaces any constant and says where it is from") {
  const Cluster cluster = parse_cluster_json(
      R"({"accelerator": "H100", "name": "ours", "gpus_per_node": 4, "nodes": 3, "topology": "full mesh",
          "source": "measured", "date": "2026-05",
          "constants": {"nics": 2, "nic_sharers": 4, "fabric_bandwidth": 6e11, "fabric_pair_bandwidth": 2e11,
                        "switch_share": null, "switch_latency": null, "fp8_flops": null}})",
      "c.json");
  CHECK(cluster.to_string() == "H100x4x3");
  CHECK(cluster.accelerator.full_name == "ours");
  CHECK(cluster.accelerator.network.bandwidth() == 25e9);
  CHECK(cluster.accelerator.network.nics.source == "measured");
  CHECK(cluster.accelerator.network.nics.date == "2026-05");
  CHECK(!cluster.accelerator.timing.switch_share);
  CHECK(!cluster.accelerator.fp8_flops);
  CHECK(cluster.links(std::vector<int>{0, 1, 2}).node_bandwidth == 4e11);
  CHECK(cluster.accelerator.bf16_flops->value == 989e12);

  const Cluster plain = parse_cluster_json(R"({"accelerator": "MI300X", "gpus_per_node": 8})", "c.json");
  CHECK(plain.to_string() == "MI300Xx8x1");
  for (const HardwareField& field : hardware_fields()) {
    const auto known = field.get(find_accelerator("H100"));
    const std::string value = field.is_share() ? "0.5"
                              : field.unit == "accelerators" || field.unit == "NICs"
                                  ? "8"
                                  : cat(known ? 2 * known->value : 8);
    const Cluster changed = parse_cluster_json(
        cat(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {")", field.name, "\": ", value, "}}"),
        "c.json");
    CHECK(field.get(changed.accelerator)->source == "c.json");
  }
}

TEST_CASE("a constant far from the catalogue's, or a count that is not whole, is refused") {
  const auto refused = [](const std::string& constant) {
    return json_refusal(cat(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {)", constant, "}}"));
  };
  CHECK(says(refused(R"("bf16_flops": 1e-300)"), "the catalogue has 9.89e+14"));
  CHECK(says(refused(R"("memory_bytes": 1e300)"), "within 10000 times"));
  CHECK(says(refused(R"("fabric_ranks": 1e12)"), "a whole number"));
  CHECK(says(refused(R"("nics": 1.5)"), "a whole number"));
  CHECK(refused(R"("memory_bytes": 96e9)").empty());
}

TEST_CASE("a cluster says which constants of the catalogue its file changed") {
  CHECK(read_cluster("H100x8x2").changes().empty());
  CHECK(parse_cluster_json(R"({"accelerator": "H100", "gpus_per_node": 8})", "x.json").changes().empty());
  const auto changes = parse_cluster_json(
                           R"({"accelerator": "H100", "gpus_per_node": 8, "topology": "full mesh",
                               "constants": {"nic_bits": 2e11, "switch_share": null, "switch_latency": null}})",
                           "x.json")
                           .changes();
  REQUIRE(changes.size() == 4);
  bool has_nic = false;
  for (const std::string& change : changes) has_nic = has_nic || change == "nic_bits 4e+11 -> 2e+11 bit/s";
  CHECK(has_nic);
  CHECK(changes.back() == "topology switch -> full mesh");
}

TEST_CASE("a JSON file that is not understood is refused in one line") {
  CHECK(says(json_refusal("{"), "c.json"));
  CHECK(says(json_refusal("[]"), "must be an object"));
  CHECK(says(json_refusal(R"({"gpus_per_node": 8})"), "accelerator is missing"));
  CHECK(says(json_refusal(R"({"accelerator": "H100"})"), "gpus_per_node is missing"));
  CHECK(says(json_refusal(R"({"accelerator": "H1000", "gpus_per_node": 8})"), "did you mean H100?"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "node": 2})"), "nearest known key is nodes"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "nic_bits": 2e11})"), "under \"constants\""));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {"bf16_flop": 1}})"),
             "nearest known key is bf16_flops"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {"bf16_flops": -1}})"),
             "bf16_flops is -1"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {"ring_share": 1.2}})"),
             "ring_share is 1.2"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {"memory_bytes": null}})"),
             "memory_bytes is null"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": {"switch_share": null}})"),
             "switch_share is missing"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "constants": 3})"), "must be an object"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 0})"), "gpus_per_node is 0"));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 8, "topology": "torus"})"), "\"torus\""));
  CHECK(says(json_refusal(R"({"accelerator": "H100", "gpus_per_node": 9})"), "joins at most 8"));
  CHECK(says(refusal("no/such/cluster.json"), "no/such/cluster.json"));
}
