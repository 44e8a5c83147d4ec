// The work of one micro-batch on a rank, layer by layer and head: the half of a step's time that plans of one mesh
// share whatever their pipeline and ZeRO stage (plan/step_time.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "octavo/plan/job.h"
#include "plan/axis_traffic.h"

namespace octavo {

/// A layer's forward and backward on a rank, computing and waiting.
struct LayerStep {
  PassTime forward;
  double again = 0;  // recompute
  double host = 0;   // that the host keeps the device waiting
  LayerTraffic traffic;
  HeldElements held;  // of a layer, before fold cuts; nothing of the head
  double tensor_exposed = 0, sequence_exposed = 0, fold_exposed = 0, expert_exposed = 0;
  double hidden = 0;  // communication of all axes beside computing

  double backward() const { return 2 * forward.matmul + 2.5 * forward.core + 2 * forward.memory; }
  double computing() const { return forward.sum() + backward() + again; }
  double exposed() const { return tensor_exposed + sequence_exposed + fold_exposed + expert_exposed; }
  double total() const { return computing() + exposed() + host; }
};

/// Of one micro-batch, per kind of layer, and the head.
struct StepParts {
  RankShare share;
  int micro_batches = 1;
  double mean_fill = 1;  // of the micro-batches: the last may be smaller
  std::vector<LayerStep> layers;
  LayerStep head;
};

/// What of `communication` hides within `window` of computing, where `share` of it shows in any case.
double hidden_part(double communication, double window, double share);

/// Throws UsageError for a micro-batch below 1.
StepParts step_parts(const StepPlan& plan, const TrainingJob& job, const AxisGroups& groups, const TimeRules& rules,
                     const Speeds& speeds, double hidden, double vocabulary, std::span<const LayerWork> kinds);

}  // namespace octavo
