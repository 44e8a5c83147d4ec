// How fast one software drives one accelerator: the constants of plan/step_time.h. One set per (software, accelerator,
// precision), never per run; bench/calibrate.cpp fits them to published step times and prints this table's lines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/layout/layout.h"
#include "octavo/mesh/hardware.h"

namespace octavo {

struct TimeRules {
  std::string software;     // "megatron-core"
  std::string accelerator;  // of the catalogue (mesh/hardware.h)
  std::string precision;    // "bf16"
  std::string source;       // of the runs that the constants were fitted to, and when these were published
  std::string date;
  // Relative, of the step times of the source's runs; 0: nothing was published
  double mean_error = 0;
  double left_out_error = 0;  // the mean of each model's with constants fitted to the others; 0: too few models
  double largest_error = 0;
  std::vector<Axis> axes = {};          // that were above 1 in the runs
  std::vector<std::string> given = {};  // constants that set_time_constant() replaced

  // Computing
  double matmul_share = 0.7;      // of the nominal peak, that a matmul without end would reach
  double attention_share = 0.5;   // of the nominal peak, by the FLOPs that causal attention needs
  double memory_share = 0.8;      // of the memory's bandwidth
  Seconds matmul_latency = 6e-6;  // per matmul: its start and its last, partly filled wave
  double hidden_passes = 20;      // per layer, forward and backward: reads and writes of a 16-bit [tokens, hidden]
  double feature_passes = 8;      // the same of [tokens, features]
  double logit_passes = 2;        // of float32 [tokens, vocabulary]
  double optimizer_bytes = 30;    // read and written per parameter by the optimizer's step
  Seconds layer_launch = 0;       // the host needs this long to start a layer's forward, and twice that its backward
  Seconds border_latency = 0;     // of one exchange between pipeline stages beyond the link's
  Seconds step_latency = 0.05;    // once a step: data, logging, barriers

  // Communication: the share of it that computing does not hide
  double tensor_exposed = 0.5;
  double sequence_exposed = 0.3;
  double pipeline_exposed = 0.3;
  double expert_exposed = 1;
  double data_exposed = 0.1;    // of gradients and weights
  double overlap = 0.8;         // share of the computing time that can hide communication, of all axes together
  double collective_share = 1;  // of the bandwidth that plan/collective_time.h says, reached within a step

  // Bytes per element on the wire
  double gradient_bytes = 4;

  /// Where the constants are no longer those that were fitted, the errors say nothing of them.
  void forget_errors() { mean_error = left_out_error = largest_error = 0; }
};

/// A constant by name, for the table that a plan prints and for fitting.
struct TimeConstant {
  std::string name, unit, meaning;
  double TimeRules::*member;

  /// Where the value of `rules` is from, and of when.
  std::pair<std::string, std::string> origin(const TimeRules& rules) const;
};
std::span<const TimeConstant> time_constants();

/// Every set there is.
std::span<const TimeRules> time_rules_table();

/// Replaces constants: "tensor_exposed=0.2,step_latency=0.01". The errors that the set had say nothing of what comes
/// out, and go. Throws UsageError for a name that is none, naming the nearest, and a value out of its range.
void set_time_constants(TimeRules& rules, std::string_view text);

struct FoundRules {
  TimeRules rules;
  std::string note;  // empty where software and accelerator have a set of their own; else what was taken instead
};

/// The set of `software` on `accelerator`; without one, that of the same software on the accelerator with the nearest
/// peak, its shares kept, but matmuls no faster than the fastest that anybody measured; its errors go. Throws
/// UsageError naming the nearest software if there is none of that name.
FoundRules find_time_rules(std::string_view software, std::string_view accelerator);

/// The same for a device that may differ from the catalogue's: with another peak or memory it counts as never measured.
FoundRules find_time_rules(std::string_view software, const Accelerator& device);

/// What a layout has that no run of the set had: "fold", "pipeline:zb". Empty: all of it was measured.
std::vector<std::string> beyond_runs(const TimeRules& rules, const Layout& layout);

/// Names of software, in the table's order.
std::vector<std::string> known_software();

}  // namespace octavo
