#include "octavo/mesh/hardware.h"

#include <doctest/doctest.h>

#include <set>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

using namespace octavo;

namespace {

std::string refusal(std::string_view name) {
  try {
    find_accelerator(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every constant of every accelerator has a unit, a source and a date") {
  for (const Accelerator& accelerator : hardware_catalogue()) {
    CAPTURE(accelerator.name);
    for (const HardwareField& field : hardware_fields()) {
      CAPTURE(field.name);
      CHECK(!field.unit.empty());
      const std::optional<HardwareConstant> constant = field.get(accelerator);
      CHECK((constant.has_value() || field.is_optional));
      if (!constant) continue;
      CHECK(constant->value > 0);
      CHECK((!field.is_share() || constant->value <= 1));
      CHECK(!constant->source.empty());
      CHECK(!constant->date.empty());
    }
  }
}

TEST_CASE("lower precision is never slower, and nobody measured more than the peak") {
  for (const Accelerator& accelerator : hardware_catalogue()) {
    CAPTURE(accelerator.name);
    double last = 0;
    for (const auto* peak : {&accelerator.fp32_flops, &accelerator.tf32_flops, &accelerator.bf16_flops,
                             &accelerator.fp8_flops, &accelerator.fp4_flops}) {
      if (!*peak) continue;
      CHECK((*peak)->value > last);
      last = (*peak)->value;
    }
    if (accelerator.measured_bf16_flops) CHECK(accelerator.measured_bf16_flops->value < accelerator.bf16_flops->value);
    if (accelerator.measured_fp8_flops) CHECK(accelerator.measured_fp8_flops->value < accelerator.fp8_flops->value);
  }
}

TEST_CASE("every name leads to one accelerator, in letters of any case") {
  std::set<std::string> seen;
  for (const Accelerator& accelerator : hardware_catalogue()) {
    std::vector<std::string> names = accelerator.aliases;
    names.insert(names.end(), {accelerator.name, accelerator.full_name});
    for (std::string name : names) {
      CHECK(&find_accelerator(name) == &accelerator);
      for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      CHECK(&find_accelerator(name) == &accelerator);
    }
    CHECK(seen.insert(accelerator.name).second);
  }
}

TEST_CASE("a device that is not in the catalogue is refused with the nearest name") {
  CHECK(refusal("H10O").find("did you mean H100?") != std::string::npos);
  CHECK(refusal("mi300").find("did you mean MI300X?") != std::string::npos);
  CHECK(refusal("RTX 4090").find("did you mean") == std::string::npos);
  CHECK(refusal("RTX 4090").find("MI355X") != std::string::npos);
  CHECK(refusal("").find("not in the catalogue") != std::string::npos);
}

TEST_CASE("a field reads and writes the constant it names") {
  for (const HardwareField& field : hardware_fields()) {
    CAPTURE(field.name);
    Accelerator accelerator = find_accelerator("H100");
    field.set(accelerator, HardwareConstant{0.25, "here", "today"});
    CHECK(field.get(accelerator)->value == 0.25);
    for (const HardwareField& other : hardware_fields()) {
      if (other.name == field.name) continue;
      const auto changed = other.get(accelerator), before = other.get(find_accelerator("H100"));
      CHECK(changed.has_value() == before.has_value());
      if (changed) CHECK(changed->source == before->source);
    }
    if (field.is_optional) {
      field.set(accelerator, std::nullopt);
      CHECK(!field.get(accelerator).has_value());
    } else {
      CHECK_THROWS_AS(field.set(accelerator, std::nullopt), InternalError);
    }
  }
}
