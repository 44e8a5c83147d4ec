#include "octavo/plan/time_rules.h"

namespace octavo {

std::span<const TimeRules> time_rules_table() {
  static const std::vector<TimeRules> kTable = {
      {.software = "megatron-core", .accelerator = "H100", .precision = "bf16", .source = "", .date = ""},
      {.software = "megatron-core", .accelerator = "GB200", .precision = "bf16", .source = "", .date = ""},
      {.software = "megatron-core", .accelerator = "B200", .precision = "bf16", .source = "", .date = ""},
      {.software = "megatron-lm", .accelerator = "B200", .precision = "bf16", .source = "", .date = ""},
      {.software = "llm-foundry", .accelerator = "H100", .precision = "bf16", .source = "", .date = ""},
      {.software = "llm-foundry", .accelerator = "A100-80", .precision = "bf16", .source = "", .date = ""},
      {.software = "llm-foundry", .accelerator = "A100-40", .precision = "bf16", .source = "", .date = ""},
      {.software = "nanotron", .accelerator = "H100", .precision = "bf16", .source = "", .date = ""},
      {.software = "torchtitan", .accelerator = "H100-96", .precision = "bf16", .source = "", .date = ""},
      {.software = "torchtitan-compiled", .accelerator = "H100-96", .precision = "bf16", .source = "", .date = ""},
      {.software = "fms-fsdp", .accelerator = "H100", .precision = "bf16", .source = "", .date = ""},
      {.software = "fms-fsdp", .accelerator = "A100-80", .precision = "bf16", .source = "", .date = ""},
  };
  return kTable;
}

}  // namespace octavo
