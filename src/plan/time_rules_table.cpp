#include "octavo/plan/time_rules.h"

namespace octavo {

std::span<const TimeRules> time_rules_table() {
  static const std::vector<TimeRules> kTable = {
      {.software = "megatron-core", .accelerator = "H100", .precision = "bf16", .source = "", .date = ""},
  };
  return kTable;
}

}  // namespace octavo
