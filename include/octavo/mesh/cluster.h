// The machines that a layout is planned for: accelerators of one kind in equal nodes. Rank r sits in node
// r / gpus_per_node, so the innermost axes of a mesh stay inside nodes.
//
// As text: NAME x ACCELERATORS-PER-NODE x NODES, "H100x8x16"; the nodes may be left out: "GB200x72" is one rack, whose
// 72 accelerators share one fabric and so are one node.
//
// As a JSON file, where every constant of the catalogue can be replaced:
//   {
//     "accelerator": "H100",          what it starts from, a name of the catalogue
//     "name": "H100 of our lab",      optional: how it is shown
//     "gpus_per_node": 8,
//     "nodes": 16,                    optional, 1
//     "topology": "switch",           optional: "switch" or "full mesh"
//     "link": "NVLink4",              optional: what the links of a node are called
//     "source": "measured in May",    optional: where the constants are from; the file's name if it is left out
//     "date": "2026-05",              optional
//     "constants": {"ring_share": 0.83, "nics": 4}      optional: names and units of hardware_fields()
//   }
// A constant lies within 10,000 times of the catalogue's, a share in (0, 1], a count is whole. Another peak takes the
// measured rate with it, unless the file has that too. One that is null is taken away, where a device may lack it:
// {"switch_share": null, "switch_latency": null}.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/mesh/device_mesh.h"
#include "octavo/mesh/hardware.h"

namespace octavo {

/// Which links the ranks of one group use. Bandwidths are bytes/s of one rank in one direction, as sold.
struct GroupLinks {
  int num_ranks = 1;
  int num_nodes = 1;             // that hold ranks of the group
  int ranks_per_node = 1;        // in the node that holds fewest; they share the group's way out of it
  bool is_even = true;           // every such node holds as many: num_ranks = num_nodes * ranks_per_node
  double node_bandwidth = 0;     // to the group's other ranks in the node together; 0 if there are none
  double pair_bandwidth = 0;     // to one of them
  double network_bandwidth = 0;  // to other nodes, while all accelerators of the node send; 0 within one node
  double fabric_share = 0;       // node_bandwidth over all the fabric has: 1 behind a switch, (g-1)/7 in a mesh of 8

  bool operator==(const GroupLinks&) const = default;
};

struct Cluster {
  Accelerator accelerator;
  int gpus_per_node = 1;
  int num_nodes = 1;

  int world_size() const { return gpus_per_node * num_nodes; }
  /// "H100x8x16"
  std::string to_string() const;
  /// What a file replaced of the catalogue's constants, as "nic_bits 4e+11 -> 2e+11 bit/s".
  std::vector<std::string> changes() const;

  /// Links of a group of ranks, ascending.
  /// Throws UsageError for ranks outside the cluster, InternalError for none.
  GroupLinks links(std::span<const int> ranks) const;

  /// Links of the groups along `axes` of a mesh whose ranks fill the cluster from rank 0: of the group that is spread
  /// over most nodes. About 10 ns where strides and sizes divide the node or are divided by it; else every group is
  /// looked at. Throws UsageError if the mesh has more ranks than the cluster.
  GroupLinks links(const DeviceMesh& mesh, std::span<const Axis> axes) const;
};

/// The cluster of a text as above, or of a JSON file if `text` ends in ".json". Throws UsageError, one line, for a
/// count that is no whole number from 1 to 1,000,000, a node larger than its fabric joins, an unknown accelerator or
/// key (naming the nearest), and a constant that is not positive or, for a share, above 1.
Cluster read_cluster(const std::string& text);

/// The cluster of JSON text; `origin` is the name used in messages.
Cluster parse_cluster_json(const std::string& json_text, const std::string& origin);

}  // namespace octavo
