// How long a training step takes, from sizes alone: the slowest stage's computing at the real shapes of its shards,
// what communication computing cannot hide, and the pipeline's idle time.
//
// Letters
//   N        tokens of a micro-batch that a rank computes with; h hidden size; e 2 bytes (4 in fp32)
//   P, B     nominal peak FLOP/s of the accelerator; bytes/s of its memory
//   T, D, S  ranks of the tensor, fold and sequence axes
// and the names of constants in plan/time_rules.h.
//
// One layer, forward:
//   matmul [N, in] x [in, out]   2 N in out / (P matmul_share) + (N in + in out + N out) e / (B memory_share)
//                                + matmul_latency
//   attention                    its FLOPs (spec/flops.h) / (P attention_share)
//   DeltaNet                     its FLOPs / (P attention_share): no measurement of it is at hand
//   bound by memory              hidden_passes N h e / 3 and feature_passes N features e / 3, over B memory_share
// Backward takes 2 times the matmuls, 2.5 times the attention and 2 times the rest; a recompute the forward of what was
// not kept. A layer takes at least what the host needs to start it (layer_launch, 3 or 4 times).
//
// Shards: under T a matmul has out/T or in/T; under fold by weights it is D matmuls of N/D rows and 1/D of the width;
// experts are matmuls of N k / E rows each.
//
// Communication of a layer, forward + backward, in collectives of plan/collective_time.h:
//   tensor            2 + 2 all_reduce of N h e; scatter: 4 all_gather or reduce_scatter and 6
//   sequence gather   all_gather of keys and values, in backward again and a reduce_scatter; ring: S-1
//                     hops, in backward 2 (S-1); ulysses: all_to_all of q, k, v and out, twice; DeltaNet:
//                     all_gather of the state
//   fold weights      attention: D broadcasts of 1/D of its weights, all_gather of keys and values; in backward both
//                     again, reduce of gradients, reduce_scatter of keys and values. MLP: D-1 hops, in backward D-1
//                     of weights and of gradients
//   fold activations  2 all_gather, 2 reduce_scatter; in backward 6 together; and rows of heads that one rank computes
//                     with and another stores, in both directions, and their gradients
//   expert            all_to_all of N k h e, there and back, twice
// A recompute moves what ulysses and expert moved forward once more, for its tokens stand elsewhere; else nothing.
// Embedding and head: tensor 2 all_reduce, or 4 of scatter's; fold: by weights D-1 hops (head: of weights twice) and of
// gradients, by activations 2 all_gather or reduce_scatter each.
// Of each axis the share *_exposed shows, and all axes together hide no more than `overlap` of the computing that they
// run beside: a layer's for those of a layer, the step's for data. Nobody published runs of fold, so its parts show as
// the same traffic of other axes: weights and gradients as under data, keys and values as under sequence, activations
// as under tensor. FLOPs that are executed: those of the model, and of what is computed again. Once a step: gradients
// (and weights, ZeRO 1) over data, sequence and expert ranks; the optimizer's bytes over B.
//
// Layers go to stages as evenly as their number allows; where it does not divide, embedding and head count as layers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "octavo/mesh/cluster.h"
#include "octavo/plan/job.h"
#include "octavo/plan/time_rules.h"
#include "octavo/spec/model_spec.h"
#include "octavo/trace/cost.h"

namespace octavo {

/// What one axis costs in a step on the slowest stage's ranks.
struct AxisTime {
  double bytes = 0;  // that a rank sends
  Seconds hidden = 0, exposed = 0;
  Algorithm algorithm = Algorithm::Direct;  // of its largest collective
};

struct StepTime {
  // On a rank of the slowest stage, all micro-batches
  Seconds matmul = 0, attention = 0, memory_bound = 0, recompute = 0, host = 0, head = 0;
  Seconds optimizer = 0, fixed = 0;
  Seconds bubble = 0;              // waiting for other stages
  std::array<AxisTime, 6> axes{};  // by Axis
  Flops model = 0, executed = 0;   // of all ranks
  Seconds total = 0;               // the sum of all times above, hidden communication apart
  double tokens_per_second = 0;    // of all ranks
  double mfu = 0, hfu = 0;         // model and executed FLOPs over total and the nominal peak; fixed formulas above

  const AxisTime& axis(Axis a) const { return axes[static_cast<int>(a)]; }
  Seconds exposed() const;    // communication of all axes
  Seconds computing() const;  // the same whatever the links: no communication, bubble or waiting for the host
};

struct AxisGroups;  // plan/axis_traffic.h
struct StepParts;

class TimeModel {
 public:
  /// What a plan does not change. Throws UsageError for an accelerator without a nominal peak in the job's precision.
  TimeModel(const ModelSpec& model, const TrainingJob& job, const Cluster& cluster, const TimeRules& rules);
  ~TimeModel();
  TimeModel(TimeModel&&) noexcept;

  /// The step under a plan whose world the cluster has. About 2 microseconds. Throws UsageError for more stages than
  /// layers, or a micro-batch below 1.
  StepTime step(const StepPlan& plan) const;

  /// The same in two halves, for a search. The first, the work of a micro-batch, is that of all plans that differ in
  /// pipeline, ZeRO stage and degree of data alone and have as many micro-batches.
  std::shared_ptr<const StepParts> parts(const StepPlan& plan, const AxisGroups& groups) const;
  StepTime step(const StepPlan& plan, const AxisGroups& groups, const StepParts& parts) const;

 private:
  struct Sizes;
  std::unique_ptr<const Sizes> sizes_;
};

}  // namespace octavo
