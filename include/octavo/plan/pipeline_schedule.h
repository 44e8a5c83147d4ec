// What a pipeline schedule costs: idle time, and activations that wait for their backward. Closed forms; the simulation
// that three of them are held against is in plan/pipeline_simulation.h.
//
// Letters
//   p, m, v    stages, micro-batches per step, chunks of the model that a device holds
//   F, B, W    time of a stage's forward, of its backward for inputs, and for weights, for one micro-batch and all of
//              the device's chunks; b = B + W a whole backward, c = F + b. Sending takes no time
//   O          time of a forward and a whole backward of two micro-batches that overlap (DualPipe)
//   unit       activations of one micro-batch over one chunk, 1/(p v) of the layers
//
//   kind         bubble                 peak per device i = 0 .. p-1, in units        needs
//   gpipe        (p-1) c                m
//   1f1b         (p-1) c                min(p-i, m)
//   interleaved  (p-1) c / v            min(2 (p-1-i) + (v-1) p + 1, m v)             v >= 2, p divides m
//   zb-h1        (p-1) (F + B - W)      p-i, and inputs of i weight gradients
//   zb-h2        (p-1) (F + B - 2 W)    2p-1-2i, and inputs of 2i weight gradients    m >= 2p-1; an optimizer step
//                                                                                     without a barrier
//   zb-v         0 if F = B = W         2p                                            v = 2
//   v-half       rate r/2 of the total  p                                             v = 2
//   v-min        rate 2r/3              2p/3                                          v = 2
//   dualpipe     (p/2-1) (O + b - 3 W)  p + 1; two copies of the parameters           p, m even, m >= 2p
//   dualpipev    (p/2-1) (O + b - 3 W)  p + 1; two copies; p/2 devices                p even, m >= p
//
// r = (p-1)/(m+p-1). A negative bubble is none. Rates of zb-v, v-half and v-min are published ones (Qi et al., Pipeline
// Parallelism with Controllable Memory, 2024), right for many micro-batches; peaks of all but the first three are upper
// bounds that do not fall when m is small.
// Sources: Huang et al. 2019 (GPipe); Narayanan et al. 2021, arXiv 2104.04473; Qi et al. 2023, arXiv 2401.10241 (zero
// bubble); deepseek-ai/DualPipe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

enum class PipelineKind {
  GPipe,
  OneForwardOneBackward,
  Interleaved,
  ZeroBubbleH1,
  ZeroBubbleH2,
  ZeroBubbleV,
  VHalf,
  VMin,
  DualPipe,
  DualPipeV,
};

/// "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe", "dualpipev".
std::string_view pipeline_kind_name(PipelineKind kind);

/// Throws UsageError, with the nearest name, for one that is none of these.
PipelineKind pipeline_kind_from_name(std::string_view name);

struct PipelineShape {
  PipelineKind kind;
  int num_stages;         // p
  int num_micro_batches;  // m
  int num_chunks = 1;     // v; 2 for the kinds in V form
};

/// What keeps the schedule from running: "interleaved needs micro-batches in multiples of its 4 stages, not 6"; nullopt
/// if nothing does. Closed forms are given all the same.
std::optional<std::string> shape_problem(const PipelineShape& shape);

/// Of one stage, any unit of time.
struct StageTimes {
  double forward;
  double backward_input;
  double backward_weight;
  std::optional<double> overlapped = std::nullopt;  // O; absent: F + B + W, no gain

  double sum() const { return forward + backward_input + backward_weight; }
};

struct PipelineBubble {
  double time;        // idle per device, in the unit of the stage's times
  double over_ideal;  // time / (m c)
  double of_total;    // time / (time + m c)
  double makespan;    // time + m c
  bool is_exact;      // false for published rates, and beyond what they hold for
};

/// Equal stages. Throws InternalError for fewer than one stage, micro-batch or chunk.
PipelineBubble pipeline_bubble(const PipelineShape& shape, const StageTimes& times);

/// A step's time with a stage of its own times per device (`stages`, p of them): for a search, about 10 ns a stage.
///   gpipe        exact: sum F + (m-1) max F, then the same of b
///   1f1b         max over j of  sum over i<j of c_i + m c_j + max(0, D - d F_j) + max(0, D - d b_j),  D = sum over i>j
///                of c_i, d = p-1-j; m = 1: sum of c. Exact for m >= p where no stage takes 1.5 times another's
///                time; where one takes 3 times, at most 5 % short
///   interleaved  the same with all but m c_j over v: within 8 % where no stage takes 1.5 times another's time
///   others       the slowest stage's m c plus the bubble of equal stages of the mean times
/// Throws InternalError unless there are p stages; DualPipe kinds take p too.
double pipeline_makespan(const PipelineShape& shape, std::span<const StageTimes> stages);

/// Most that a device holds at once.
struct InFlight {
  double activations;        // units
  double weight_inputs = 0;  // inputs of weight gradients that are put off, of as many units
};

/// Per device. Throws InternalError as above.
std::vector<InFlight> peak_in_flight(const PipelineShape& shape);

/// Devices; p but for dualpipev.
int num_devices(const PipelineShape& shape);

/// Copies of its stage's parameters that the model has over all devices.
int parameter_copies(const PipelineShape& shape);

/// Bytes sent between devices over those of 1f1b: v, since every chunk has its borders.
int border_factor(const PipelineShape& shape);

}  // namespace octavo
