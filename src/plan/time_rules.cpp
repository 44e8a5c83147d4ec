#include "octavo/plan/time_rules.h"

#include <algorithm>
#include <cmath>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/mesh/hardware.h"

namespace octavo {
namespace {

double bf16_peak(const std::string& accelerator) {
  const Accelerator& found = find_accelerator(accelerator);
  return found.bf16_flops ? found.bf16_flops->value : 1;
}

}  // namespace

std::span<const TimeConstant> time_constants() {
  static const std::vector<TimeConstant> kConstants = {
      {"matmul_share", "share", "of the nominal peak, a matmul without end", &TimeRules::matmul_share},
      {"attention_share", "share", "of the nominal peak, causal attention", &TimeRules::attention_share},
      {"memory_share", "share", "of the memory's bandwidth", &TimeRules::memory_share},
      {"matmul_latency", "s", "per matmul", &TimeRules::matmul_latency},
      {"hidden_passes", "passes", "over a 16-bit [tokens, hidden], per layer", &TimeRules::hidden_passes},
      {"feature_passes", "passes", "over a 16-bit [tokens, features], per layer", &TimeRules::feature_passes},
      {"logit_passes", "passes", "over a float32 [tokens, vocabulary]", &TimeRules::logit_passes},
      {"optimizer_bytes", "B", "read and written per parameter", &TimeRules::optimizer_bytes},
      {"layer_launch", "s", "of the host, per layer forward", &TimeRules::layer_launch},
      {"border_latency", "s", "per exchange between stages", &TimeRules::border_latency},
      {"step_latency", "s", "per step", &TimeRules::step_latency},
      {"tensor_exposed", "share", "of tensor's communication that shows", &TimeRules::tensor_exposed},
      {"sequence_exposed", "share", "of sequence's communication that shows", &TimeRules::sequence_exposed},
      {"pipeline_exposed", "share", "of pipeline's communication that shows", &TimeRules::pipeline_exposed},
      {"expert_exposed", "share", "of expert's communication that shows", &TimeRules::expert_exposed},
      {"data_exposed", "share", "of gradients' and weights' communication that shows", &TimeRules::data_exposed},
      {"fold_exposed", "share", "of fold's communication that shows", &TimeRules::fold_exposed,
       "octavo over an emulated link (docs/folding.md)"},
      {"overlap", "share", "of computing that can hide communication", &TimeRules::overlap},
      {"collective_share", "share", "of a collective's bandwidth reached within a step", &TimeRules::collective_share},
      {"gradient_bytes", "B", "per gradient element on the wire", &TimeRules::gradient_bytes},
  };
  return kConstants;
}

std::pair<std::string, std::string> TimeConstant::origin(const TimeRules& rules) const {
  static const TimeRules kDefault;
  if (rules.*member == kDefault.*member) return {default_source, "2026-11"};
  return {rules.source, rules.date};
}

std::vector<std::string> known_software() {
  std::vector<std::string> names;
  for (const TimeRules& rules : time_rules_table()) {
    if (std::find(names.begin(), names.end(), rules.software) == names.end()) names.push_back(rules.software);
  }
  return names;
}

FoundRules find_time_rules(std::string_view software, std::string_view accelerator) {
  const std::string wanted = find_accelerator(accelerator).name;
  const TimeRules* nearest_rules = nullptr;
  double distance = 0;
  for (const TimeRules& rules : time_rules_table()) {
    if (rules.software != software) continue;
    if (rules.accelerator == wanted) return {rules, ""};
    const double apart = std::abs(std::log(bf16_peak(rules.accelerator) / bf16_peak(wanted)));
    if (nearest_rules == nullptr || apart < distance) {
      nearest_rules = &rules;
      distance = apart;
    }
  }
  if (nearest_rules == nullptr) {
    const std::vector<std::string> names = known_software();
    const std::string close = nearest(software, names);
    throw UsageError(cat("[plan] no constants are known for software ", in_quotes(software),
                         close.empty() ? "" : cat("; did you mean ", close, "?"), "; there are ", join(names, ", ")));
  }
  FoundRules found{*nearest_rules, cat("no run of ", software, " on ", wanted, " is known; the shares are those on ",
                                       nearest_rules->accelerator)};
  found.rules.accelerator = wanted;
  return found;
}

}  // namespace octavo
