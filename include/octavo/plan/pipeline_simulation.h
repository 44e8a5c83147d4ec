// A pipeline schedule run operation by operation: what closed forms are held against, and the truth for stages of
// unequal times.
#pragma once

#include <span>
#include <vector>

#include "octavo/plan/pipeline_schedule.h"

namespace octavo {

struct PipelineTimeline {
  double makespan;                    // from the first forward to the last backward; sending takes no time
  std::vector<double> busy;           // per device, time spent computing
  std::vector<int> peak_activations;  // per device, most units between the end of their forward and of their backward
};

/// Every device does its operations in the order of the schedule, each as soon as what it needs is there: gpipe all
/// forwards, then all backwards; 1f1b and interleaved as Megatron-LM orders them (Narayanan et al. 2021). `stages` has
/// a device's times for all its chunks, one entry per device; a chunk takes 1/v of them. A backward is whole (B + W).
/// Throws UsageError for the other kinds and for a shape with a problem, InternalError unless there are p stages.
PipelineTimeline simulate_pipeline(const PipelineShape& shape, std::span<const StageTimes> stages);

}  // namespace octavo
