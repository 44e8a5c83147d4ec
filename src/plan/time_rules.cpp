#include "octavo/plan/time_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

double bf16_peak(const std::string& accelerator) {
  const Accelerator& found = find_accelerator(accelerator);
  return found.bf16_flops ? found.bf16_flops->value : 1;
}

/// Whether constants fitted on one hold on the other: links and sizes of memory are no part of them.
bool computes_alike(const Accelerator& a, const Accelerator& b) {
  const auto value = [](const std::optional<HardwareConstant>& constant) { return constant ? constant->value : 0; };
  return value(a.bf16_flops) == value(b.bf16_flops) && value(a.fp32_flops) == value(b.fp32_flops) &&
         a.memory_bandwidth.value == b.memory_bandwidth.value;
}

/// Software with runs of its own on the accelerator.
std::vector<std::string> software_on(const std::string& accelerator) {
  std::vector<std::string> names;
  for (const TimeRules& rules : time_rules_table()) {
    if (rules.accelerator == accelerator) names.push_back(rules.software);
  }
  return names;
}

/// Shares lie in (0, 1], and those that show may be none; all else is no less than 0, and below `most`.
void check_constant(const TimeConstant& constant, double value, const std::string& where) {
  constexpr double kMostSeconds = 100, kMostElse = 1000;
  const bool is_share = constant.unit == "share", may_be_none = constant.name.ends_with("_exposed");
  const double most = is_share ? 1 : constant.unit == "s" ? kMostSeconds : kMostElse;
  const bool needs_some = (is_share && !may_be_none) || constant.unit == "B";
  if (!(value <= most) || value < 0 || (needs_some && value == 0)) {
    throw UsageError(cat(where, ": use ", needs_some ? "more than 0" : "0", " to ", most, " ", constant.unit));
  }
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
      {"tensor_exposed", "share", "of tensor's, and of fold's activations, that shows", &TimeRules::tensor_exposed},
      {"sequence_exposed", "share", "of sequence's, and of fold's keys and values, that shows",
       &TimeRules::sequence_exposed},
      {"pipeline_exposed", "share", "of pipeline's communication that shows", &TimeRules::pipeline_exposed},
      {"expert_exposed", "share", "of expert's communication that shows", &TimeRules::expert_exposed},
      {"data_exposed", "share", "of gradients' and weights', under ZeRO and fold, that shows",
       &TimeRules::data_exposed},
      {"overlap", "share", "of computing that can hide communication", &TimeRules::overlap},
      {"collective_share", "share", "of a collective's bandwidth reached within a step", &TimeRules::collective_share},
      {"gradient_bytes", "B", "per gradient element on the wire", &TimeRules::gradient_bytes},
  };
  return kConstants;
}

std::pair<std::string, std::string> TimeConstant::origin(const TimeRules& rules) const {
  static const TimeRules kDefault;
  if (std::find(rules.given.begin(), rules.given.end(), name) != rules.given.end()) return {"given by the user", "-"};
  if (rules.*member == kDefault.*member) return {"assumed", "2026-11"};
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
  return find_time_rules(software, find_accelerator(accelerator));
}

FoundRules find_time_rules(std::string_view software, const Accelerator& device) {
  const bool is_known = computes_alike(device, find_accelerator(device.name));
  const double peak = device.bf16_flops ? device.bf16_flops->value : 1;
  const TimeRules* nearest_rules = nullptr;
  double distance = 0;
  for (const TimeRules& rules : time_rules_table()) {
    if (rules.software != software) continue;
    if (rules.accelerator == device.name && is_known) return {rules, ""};
    const double apart = std::abs(std::log(bf16_peak(rules.accelerator) / peak));
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
  FoundRules found{*nearest_rules, cat("no run of ", software, " on ", is_known ? device.name : device.full_name,
                                       is_known ? "" : " as the file describes it",
                                       " is known; the shares are those on ", nearest_rules->accelerator)};
  found.rules.accelerator = device.name;
  found.rules.forget_errors();
  found.rules.axes.clear();
  if (device.measured_bf16_flops && device.bf16_flops) {
    const double reached = device.measured_bf16_flops->value / device.bf16_flops->value;
    if (reached < found.rules.matmul_share) {
      found.rules.matmul_share = reached;
      found.note += cat("; matmuls reach no more than the ", fixed(device.measured_bf16_flops->value / 1e12, 0),
                        " TFLOP/s measured on it");
    }
    found.rules.attention_share = std::min(found.rules.attention_share, reached);
  }
  if (!is_known) return found;
  const std::vector<std::string> others = software_on(device.name);
  if (!others.empty()) found.note += cat("; there are runs of ", join(others, ", "), " on it");
  return found;
}

std::vector<std::string> beyond_runs(const TimeRules& rules, const Layout& layout) {
  std::vector<std::string> words;
  for (const Axis axis : kAllAxes) {
    if (layout.mesh.size(axis) == 1) continue;
    const bool has_runs = std::find(rules.axes.begin(), rules.axes.end(), axis) != rules.axes.end();
    if (!has_runs) {
      words.emplace_back(axis_name(axis));
    } else if (axis == Axis::Pipeline && layout.pipeline_form == PipelineForm::ZeroBubble) {
      words.emplace_back("pipeline:zb");
    } else if (axis == Axis::Pipeline && layout.pipeline_form == PipelineForm::AllForward) {
      words.emplace_back("pipeline:gpipe");
    }
  }
  return words;
}

void set_time_constants(TimeRules& rules, std::string_view text) {
  for (const std::string& word : split(text, ',')) {
    const std::string where = cat("[plan] time constant ", in_quotes(word, 60));
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw UsageError(cat(where, ": write NAME=VALUE, as in tensor_exposed=0.2"));
    const std::string name = word.substr(0, equals);
    const auto constants = time_constants();
    const auto constant =
        std::find_if(constants.begin(), constants.end(), [&](const TimeConstant& other) { return other.name == name; });
    if (constant == constants.end()) {
      std::vector<std::string> names;
      for (const TimeConstant& other : constants) names.push_back(other.name);
      const std::string close = nearest(name, names);
      const auto fields = hardware_fields();
      const bool is_hardware =
          std::any_of(fields.begin(), fields.end(), [&](const HardwareField& field) { return field.name == name; });
      throw UsageError(cat(where, is_hardware ? ": that is the cluster's; it belongs under \"constants\" of a JSON file"
                                  : close.empty() ? ": there is none of that name; --constants lists them"
                                                  : cat(": there is none of that name; the nearest is ", close)));
    }
    if (std::find(rules.given.begin(), rules.given.end(), name) != rules.given.end()) {
      throw UsageError(cat(where, ": ", name, " is given twice; name it once"));
    }
    double value = 0;
    const char *begin = word.data() + equals + 1, *end = word.data() + word.size();
    const auto [read, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || read != end) throw UsageError(cat(where, ": the value is no number"));
    check_constant(*constant, value, where);
    rules.*constant->member = value;
    rules.given.push_back(name);
    rules.forget_errors();
  }
}

}  // namespace octavo
