#include <type_traits>
#include <utility>

#include "octavo/base/error.h"
#include "octavo/mesh/hardware.h"

namespace octavo {
namespace {

void put(HardwareConstant& place, std::optional<HardwareConstant> value) {
  internal_check(value.has_value(), "[mesh] a constant was taken away that every device has");
  place = *std::move(value);
}
void put(std::optional<HardwareConstant>& place, std::optional<HardwareConstant> value) {
  place = std::move(value);
}

/// The field that a path of members leads to: field<&Accelerator::fabric, &Fabric::ranks>.
template <auto... path>
HardwareField field(std::string name, std::string unit, std::string direction = "") {
  using Place = std::remove_cvref_t<decltype((std::declval<Accelerator&>().*....*path))>;
  return {
      .name = std::move(name),
      .unit = std::move(unit),
      .direction = std::move(direction),
      .is_optional = !std::is_same_v<Place, HardwareConstant>,
      .get = [](const Accelerator& accelerator) -> std::optional<HardwareConstant> { return (accelerator.*....*path); },
      .set = [](Accelerator& accelerator,
                std::optional<HardwareConstant> value) { put((accelerator.*....*path), std::move(value)); }};
}

std::vector<HardwareField> make_fields() {
  using A = Accelerator;
  using T = FabricTiming;
  constexpr auto timing = &A::timing;
  const std::string one_way = "one way";
  return {
      field<&A::fp32_flops>("fp32_flops", "FLOP/s"),
      field<&A::tf32_flops>("tf32_flops", "FLOP/s"),
      field<&A::bf16_flops>("bf16_flops", "FLOP/s"),
      field<&A::fp8_flops>("fp8_flops", "FLOP/s"),
      field<&A::mxfp8_flops>("mxfp8_flops", "FLOP/s"),
      field<&A::fp4_flops>("fp4_flops", "FLOP/s"),
      field<&A::measured_bf16_flops>("measured_bf16_flops", "FLOP/s"),
      field<&A::measured_fp8_flops>("measured_fp8_flops", "FLOP/s"),
      field<&A::memory_bytes>("memory_bytes", "B"),
      field<&A::memory_bandwidth>("memory_bandwidth", "B/s"),
      field<&A::host_bandwidth>("host_bandwidth", "B/s", one_way),
      field<&A::fabric, &Fabric::ranks>("fabric_ranks", "accelerators"),
      field<&A::fabric, &Fabric::bandwidth>("fabric_bandwidth", "B/s", one_way),
      field<&A::fabric, &Fabric::pair_bandwidth>("fabric_pair_bandwidth", "B/s", one_way),
      field<&A::network, &Network::nics>("nics", "NICs"),
      field<&A::network, &Network::sharers>("nic_sharers", "accelerators"),
      field<&A::network, &Network::nic_bits>("nic_bits", "bit/s", one_way),
      field<timing, &T::call_latency>("call_latency", "s"),
      field<timing, &T::hop_latency>("hop_latency", "s"),
      field<timing, &T::small_hop>("small_hop", "s"),
      field<timing, &T::small_share>("small_share", "share"),
      field<timing, &T::ring_share>("ring_share", "share"),
      field<timing, &T::tree_share>("tree_share", "share"),
      field<timing, &T::pair_share>("pair_share", "share"),
      field<timing, &T::switch_latency>("switch_latency", "s"),
      field<timing, &T::switch_share>("switch_share", "share"),
      field<timing, &T::network_hop>("network_hop", "s"),
      field<timing, &T::network_small_hop>("network_small_hop", "s"),
      field<timing, &T::network_share>("network_share", "share"),
  };
}

}  // namespace

std::span<const HardwareField> hardware_fields() {
  static const std::vector<HardwareField> fields = make_fields();
  return fields;
}

}  // namespace octavo
