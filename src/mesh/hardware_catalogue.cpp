// Sources
//   sheet       the vendor's data sheet; the date is that of its first publication. Peaks with sparsity are halved.
//   golden      tests/data/golden/hardware.json, which names its own sources (stas00/ml-engineering 744d01e,
//               ai-dynamo/aiconfigurator 095f58a, NVIDIA/dgxc-benchmarking, AMD-AGI/Primus fd1eeab)
//   tuning.cc   the model that NCCL chooses its algorithms by: NVIDIA/nccl src/graph/tuning.cc
//   fit         to the coll.* and p2p.* rows of golden
//   assumed     nobody measured it where we could see: an educated guess, to be overridden by who knows better
#include "octavo/mesh/hardware.h"

namespace octavo {
namespace {

using Constant = HardwareConstant;

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6;

Constant sheet(double value, const char* date) {
  return {value, "vendor data sheet", date};
}
Constant golden(double value) {
  return {value, "golden/hardware.json", "2025"};
}
Constant tuning(double value) {
  return {value, "NCCL tuning.cc", "2022"};
}
Constant fit(double value, const char* rows) {
  return {value, std::string("fit to golden/hardware.json ") + rows, "2025"};
}
Constant assumed(double value) {
  return {value, "assumed", "2026"};
}

// ---------------------------------------------------------------------------------------------- fabrics

Fabric nvlink(const char* link, double giga_bytes, int ranks, const char* date) {
  return {.link = link,
          .topology = FabricTopology::Switch,
          .ranks = sheet(ranks, date),
          .bandwidth = sheet(giga_bytes * kGiga, date),
          .pair_bandwidth = sheet(giga_bytes * kGiga, date)};
}

Fabric xgmi(double giga_bytes_per_link, const char* date) {
  return {.link = "xGMI, 7 links",
          .topology = FabricTopology::FullMesh,
          .ranks = sheet(8, date),
          .bandwidth = sheet(7 * giga_bytes_per_link * kGiga, date),
          .pair_bandwidth = sheet(giga_bytes_per_link * kGiga, date)};
}

Network rails(double giga_bits, int nics = 8) {
  return {.nics = golden(nics), .sharers = golden(nics), .nic_bits = golden(giga_bits * kGiga)};
}

/// What NCCL has in common on every fabric.
FabricTiming nccl() {
  return {.library = "NCCL",
          .call_latency = fit(10.5 * kMicro, "coll.h100x8"),
          .hop_latency = tuning(3.4 * kMicro),
          .small_hop = tuning(0.47 * kMicro),
          .small_share = tuning(0.25),
          .ring_share = {0.80, "nccl-tests issue 326: 360 GB/s of 450", "2025-06"},
          .tree_share = tuning(0.9),
          .pair_share = fit(0.881, "p2p.h200"),
          .switch_latency = std::nullopt,
          .switch_share = std::nullopt,
          .network_hop = tuning(9.6 * kMicro),
          .network_small_hop = tuning(2.7 * kMicro),
          .network_share = assumed(0.9)};
}

FabricTiming nccl_nvlink3() {
  FabricTiming timing = nccl();
  timing.ring_share = {0.783, "NCCL tuning.cc: at most 235 GB/s of 300", "2022"};
  return timing;
}

FabricTiming nccl_nvlink4() {
  FabricTiming timing = nccl();
  timing.switch_latency = fit(7.5 * kMicro, "coll.h100x8");
  timing.switch_share = fit(0.686, "coll.h100x8");
  return timing;
}

FabricTiming pytorch_nvlink5() {
  FabricTiming timing = nccl();
  timing.library = "NCCL called from PyTorch";
  timing.call_latency = fit(37.0 * kMicro, "coll.b200x8");
  timing.switch_latency = fit(7.5 * kMicro, "coll.h100x8");
  timing.switch_share = fit(0.545, "coll.b200x8");
  timing.pair_share = fit(0.856, "p2p.gb200");
  return timing;
}

// Half a millisecond that does not depend on the bytes says that 72 ranks were summed round a ring, not in the switch.
FabricTiming nccl_nvl72() {
  FabricTiming timing = nccl();
  timing.ring_share = fit(0.945, "coll.gb200x72");
  timing.pair_share = fit(0.856, "p2p.gb200");
  return timing;
}

FabricTiming rccl() {
  FabricTiming timing = nccl();
  timing.library = "RCCL";
  timing.call_latency = assumed(10.5 * kMicro);
  timing.ring_share = fit(0.72, "coll.mi300x");
  timing.pair_share = fit(0.75, "p2p.mi300x");
  return timing;
}

// ------------------------------------------------------------------------------------------ accelerators

Accelerator ampere(const char* name, const char* full_name, std::vector<std::string> aliases, double memory_gb,
                   double memory_rate, double link_gb, const char* date) {
  return {.name = name,
          .full_name = full_name,
          .aliases = std::move(aliases),
          .fp32_flops = sheet(19.5 * kTera, "2020-05"),
          .tf32_flops = sheet(156 * kTera, "2020-05"),
          .bf16_flops = sheet(312 * kTera, "2020-05"),
          .fp8_flops = std::nullopt,
          .mxfp8_flops = std::nullopt,
          .fp4_flops = std::nullopt,
          .measured_bf16_flops = golden(271.2 * kTera),
          .measured_fp8_flops = std::nullopt,
          .memory_bytes = sheet(memory_gb * kGiga, date),
          .memory_bandwidth = sheet(memory_rate * kGiga, date),
          .host_bandwidth = sheet(32 * kGiga, date),
          .fabric = nvlink(link_gb == 300 ? "NVLink3, 12 links" : "NVLink3, 8 links", link_gb, 8, date),
          .network = rails(200),
          .timing = nccl_nvlink3()};
}

Accelerator hopper(const char* name, const char* full_name, std::vector<std::string> aliases, Constant memory,
                   Constant memory_rate, double measured_fp8, const char* date) {
  return {.name = name,
          .full_name = full_name,
          .aliases = std::move(aliases),
          .fp32_flops = sheet(67 * kTera, "2022-03"),
          .tf32_flops = sheet(494.5 * kTera, "2022-03"),
          .bf16_flops = sheet(989 * kTera, "2022-03"),
          .fp8_flops = sheet(1979 * kTera, "2022-03"),
          .mxfp8_flops = std::nullopt,
          .fp4_flops = std::nullopt,
          .measured_bf16_flops = golden(794.5 * kTera),
          .measured_fp8_flops = golden(measured_fp8 * kTera),
          .memory_bytes = std::move(memory),
          .memory_bandwidth = std::move(memory_rate),
          .host_bandwidth = sheet(64 * kGiga, date),
          .fabric = nvlink("NVLink4, 18 links", 450, 8, date),
          .network = rails(400),
          .timing = nccl_nvlink4()};
}

struct Blackwell {
  const char* name;
  const char* full_name;
  std::vector<std::string> aliases;
  double fp32, tf32, bf16, fp8, fp4;  // TFLOP/s
  std::optional<Constant> measured_bf16, measured_fp8;
  double memory_gb, memory_rate, host_gb;
  int fabric_ranks, nics;
  double nic_giga_bits;
  const char* date;
};

Accelerator blackwell(const Blackwell& part) {
  const bool is_rack = part.fabric_ranks > 8;
  return {.name = part.name,
          .full_name = part.full_name,
          .aliases = part.aliases,
          .fp32_flops = sheet(part.fp32 * kTera, part.date),
          .tf32_flops = sheet(part.tf32 * kTera, part.date),
          .bf16_flops = golden(part.bf16 * kTera),
          .fp8_flops = golden(part.fp8 * kTera),
          .mxfp8_flops = golden(part.fp8 * kTera),
          .fp4_flops = sheet(part.fp4 * kTera, part.date),
          .measured_bf16_flops = part.measured_bf16,
          .measured_fp8_flops = part.measured_fp8,
          .memory_bytes = golden(part.memory_gb * kGiga),
          .memory_bandwidth = golden(part.memory_rate * kGiga),
          .host_bandwidth = sheet(part.host_gb * kGiga, part.date),
          .fabric = nvlink(is_rack ? "NVLink5, 18 links, one switch domain of 72, 4 to a tray" : "NVLink5, 18 links",
                           900, part.fabric_ranks, part.date),
          .network = rails(part.nic_giga_bits, part.nics),
          .timing = is_rack ? nccl_nvl72() : pytorch_nvlink5()};
}

struct Instinct {
  const char* name;
  const char* full_name;
  std::vector<std::string> aliases;
  double fp32;
  std::optional<Constant> tf32;
  double bf16, fp8;  // TFLOP/s
  std::optional<Constant> mxfp8, fp4;
  double measured_bf16, memory_gb, memory_rate, link_gb;
  const char* date;
};

Accelerator instinct(const Instinct& part) {
  return {.name = part.name,
          .full_name = part.full_name,
          .aliases = part.aliases,
          .fp32_flops = sheet(part.fp32 * kTera, part.date),
          .tf32_flops = part.tf32,
          .bf16_flops = sheet(part.bf16 * kTera, part.date),
          .fp8_flops = sheet(part.fp8 * kTera, part.date),
          .mxfp8_flops = part.mxfp8,
          .fp4_flops = part.fp4,
          .measured_bf16_flops = golden(part.measured_bf16 * kTera),
          .measured_fp8_flops = std::nullopt,
          .memory_bytes = sheet(part.memory_gb * kGiga, part.date),
          .memory_bandwidth = sheet(part.memory_rate * kGiga, part.date),
          .host_bandwidth = sheet(64 * kGiga, part.date),
          .fabric = xgmi(part.link_gb, part.date),
          .network = rails(400),
          .timing = rccl()};
}

std::vector<Accelerator> make_catalogue() {
  const Constant hbm2e = {2400 * kGiga, "pytorch/torchtitan b5bcd76: 96 GB HBM2e at 2.4 TB/s, 500 W", "2025"};
  const auto measured = [](double tera) { return std::optional(golden(tera * kTera)); };
  return {
      ampere("A100-40", "NVIDIA A100 SXM 40GB", {"a100-40gb"}, 40, 1555, 300, "2020-05"),
      ampere("A100-80", "NVIDIA A100 SXM 80GB", {"a100", "a100-80gb", "a100-sxm"}, 80, 2039, 300, "2020-11"),
      ampere("A800-80", "NVIDIA A800 SXM 80GB", {"a800", "a800-80gb", "a800-sxm"}, 80, 2039, 200, "2022-11"),
      hopper("H100", "NVIDIA H100 SXM", {"h100-sxm", "h100-80", "h100-80gb"}, sheet(80 * kGiga, "2022-03"),
             sheet(3350 * kGiga, "2022-03"), 1402.6, "2022-03"),
      hopper("H100-96", "NVIDIA H100 96GB HBM2e", {"h100-96gb"}, {96 * kGiga, hbm2e.source, hbm2e.date}, hbm2e, 1402.6,
             "2022-03"),
      hopper("H200", "NVIDIA H200 SXM", {"h200-sxm"}, sheet(141 * kGiga, "2023-11"), sheet(4800 * kGiga, "2023-11"),
             1453.4, "2023-11"),
      blackwell({"B200",
                 "NVIDIA B200 SXM",
                 {"b200-sxm"},
                 75,
                 1125,
                 2250,
                 4500,
                 9000,
                 measured(1745),
                 measured(3432.5),
                 180,
                 7700,
                 64,
                 8,
                 8,
                 400,
                 "2024-03"}),
      blackwell({"GB200",
                 "NVIDIA GB200 NVL72",
                 {"gb200-nvl72"},
                 80,
                 1250,
                 2450,
                 4900,
                 10000,
                 measured(1822),
                 measured(3615.6),
                 186,
                 8000,
                 450,
                 72,
                 4,
                 400,
                 "2024-03"}),
      blackwell({"B300",
                 "NVIDIA B300 SXM",
                 {"b300-sxm"},
                 75,
                 1125,
                 2250,
                 4500,
                 13500,
                 measured(1769),
                 std::nullopt,
                 270,
                 7700,
                 128,
                 8,
                 8,
                 800,
                 "2025-03"}),
      blackwell({"GB300",
                 "NVIDIA GB300 NVL72",
                 {"gb300-nvl72"},
                 80,
                 1250,
                 2450,
                 4900,
                 15000,
                 std::nullopt,
                 std::nullopt,
                 279,
                 8000,
                 450,
                 72,
                 4,
                 800,
                 "2025-03"}),
      instinct({"MI300X",
                "AMD Instinct MI300X",
                {},
                163.4,
                sheet(653.7 * kTera, "2023-12"),
                1307.4,
                2614.9,
                std::nullopt,
                std::nullopt,
                668.4,
                192,
                5300,
                64,
                "2023-12"}),
      instinct({"MI325X",
                "AMD Instinct MI325X",
                {},
                163.4,
                sheet(653.7 * kTera, "2024-10"),
                1307.4,
                2614.9,
                std::nullopt,
                std::nullopt,
                784.9,
                256,
                6000,
                64,
                "2024-10"}),
      instinct({"MI355X",
                "AMD Instinct MI355X",
                {},
                157.3,
                std::nullopt,
                2516.6,
                5033.2,
                sheet(5033.2 * kTera, "2025-06"),
                sheet(10066.3 * kTera, "2025-06"),
                1565,
                288,
                8000,
                76.5,
                "2025-06"}),
  };
}

}  // namespace

std::span<const Accelerator> hardware_catalogue() {
  static const std::vector<Accelerator> catalogue = make_catalogue();
  return catalogue;
}

}  // namespace octavo
