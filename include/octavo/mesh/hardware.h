// The catalogue of accelerators: what they are sold as, what was measured, and where each number is from. A device that
// is not in it is refused, so that no utilisation is ever stated against a guessed peak.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/mesh/fabric.h"

namespace octavo {

/// Peaks are FLOP/s of dense matrices, without sparsity. Memory is bytes as sold: powers of ten, no GiB.
struct Accelerator {
  std::string name;                  // as in a cluster's text: "H100"
  std::string full_name;             // "NVIDIA H100 SXM"
  std::vector<std::string> aliases;  // other names it is found under: "h100-sxm"

  std::optional<HardwareConstant> fp32_flops, tf32_flops, bf16_flops, fp8_flops, mxfp8_flops, fp4_flops;
  std::optional<HardwareConstant> measured_bf16_flops, measured_fp8_flops;  // the best matmul that somebody measured
  HardwareConstant memory_bytes;
  HardwareConstant memory_bandwidth;  // bytes/s
  HardwareConstant host_bandwidth;    // bytes/s to the host (PCIe or C2C) in one direction
  Fabric fabric;
  Network network;
  FabricTiming timing;
};

/// All accelerators known, in the order in which they are listed to people.
std::span<const Accelerator> hardware_catalogue();

/// The accelerator of that name, full name or alias, whatever the case of its letters. Throws UsageError, which names
/// the nearest, for one that is not in the catalogue. The reference holds for the run of the program.
const Accelerator& find_accelerator(std::string_view name);

/// A constant of an accelerator by name: how it is printed, and how a cluster's file overrides it.
struct HardwareField {
  std::string name;       // "bf16_flops"
  std::string unit;       // "FLOP/s", "B", "B/s", "bit/s", "s", "share", "accelerators", "NICs"
  std::string direction;  // "one way" for links, else empty
  bool is_optional;       // a device may lack it
  std::optional<HardwareConstant> (*get)(const Accelerator&);
  void (*set)(Accelerator&, std::optional<HardwareConstant>);  // InternalError for nullopt unless is_optional

  bool is_share() const { return unit == "share"; }  // lies in (0, 1]
};

/// The constants that an Accelerator has, in the order of its members.
std::span<const HardwareField> hardware_fields();

}  // namespace octavo
