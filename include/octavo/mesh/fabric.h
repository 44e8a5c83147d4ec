// What joins the accelerators of a node, and nodes to each other: bandwidths as sold, and how a collective library uses
// them. Every number carries where it is from, so that a plan can print what it believes.
#pragma once

#include <optional>
#include <string>

namespace octavo {

/// A number with its origin. What it counts stands in the list of hardware_fields() (mesh/hardware.h).
struct HardwareConstant {
  double value;
  std::string source;  // "vendor data sheet", "nccl-tests issue 326", "cluster.json"
  std::string date;    // of the source, "2023-12" or "2024"
};

enum class FabricTopology {
  Switch,    // every accelerator reaches every other with its full bandwidth (NVSwitch)
  FullMesh,  // a link of its own to each of the others: a group of g uses g-1 of them (xGMI)
};

/// The links inside a node. Bandwidths are bytes/s of one accelerator in one direction.
struct Fabric {
  std::string link;  // "NVLink4, 18 links"
  FabricTopology topology = FabricTopology::Switch;
  HardwareConstant ranks;           // most accelerators that one fabric joins
  HardwareConstant bandwidth;       // to all peers together
  HardwareConstant pair_bandwidth;  // to one peer
};

/// The links between nodes: NICs that some accelerators share evenly, in rails.
struct Network {
  HardwareConstant nics;      // NICs of a node; of a tray where a node is a rack
  HardwareConstant sharers;   // accelerators that share them
  HardwareConstant nic_bits;  // bit/s of one NIC in one direction
  double bandwidth() const {  // bytes/s of one accelerator in one direction while all of them send
    return nics.value * nic_bits.value / 8 / sharers.value;
  }
};

/// How a library drives these links, as fitted to measurements: one set per (fabric, library), never per message size.
/// The formulas that use it are in plan/collective_time.h.
struct FabricTiming {
  std::string library;            // "NCCL", "NCCL called from PyTorch", "RCCL"
  HardwareConstant call_latency;  // seconds of a call that moves nothing
  HardwareConstant hop_latency;   // seconds a message needs from rank to rank inside a node
  HardwareConstant small_hop;     // the same under the protocol for small messages
  HardwareConstant small_share;   // of the bandwidth below, under that protocol
  HardwareConstant ring_share;    // of the fabric's bandwidth that collectives reach
  HardwareConstant tree_share;    // of what a ring reaches, where trees span nodes
  HardwareConstant pair_share;    // of the pair's bandwidth that send, recv and all-to-all reach
  // A switch that sums: all-reduce by reading sums and writing copies through it. Absent where it cannot, or where
  // measurements show that the library does not.
  std::optional<HardwareConstant> switch_latency;  // seconds of each of its two steps
  std::optional<HardwareConstant> switch_share;    // of the fabric's bandwidth
  HardwareConstant network_hop;                    // seconds from node to node
  HardwareConstant network_small_hop;              // the same under the protocol for small messages
  HardwareConstant network_share;                  // of the network's bandwidth
};

}  // namespace octavo
