// How the layers of a model go over the stages of a pipeline, and how unequal that makes them: part of an audit.
//
// A stage has consecutive layers. Its cost is forward FLOPs of one sequence of T tokens, pairs counted as half of full
// attention (spec/flops.h, HalfSquare); the embedding costs nothing; the head, where it is counted, goes with the last.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/layout/interval.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// [0, num_units) over `num_stages` as evenly as whole units allow; the first stages are the larger. A unit is
/// `unit_layers` layers, which must divide their number. Throws UsageError if there are fewer units than stages.
std::vector<Interval> even_stages(const ModelSpec& model, int num_stages, std::int64_t unit_layers);

/// The contiguous cut whose costliest stage costs least; of several such cuts the one whose early stages are longest.
/// Throws as even_stages().
std::vector<Interval> optimal_stages(const ModelSpec& model, int num_stages, std::int64_t tokens, bool with_head);

/// Layers of each kind in a stage.
struct StageComposition {
  std::int64_t recurrent = 0, attention = 0;  // DeltaNet; softmax and latent attention
  std::int64_t with_experts = 0;              // of them all
  bool operator==(const StageComposition&) const = default;
};
std::vector<StageComposition> compositions(const ModelSpec& model, const std::vector<Interval>& stages);

/// FLOPs of each stage.
std::vector<Flops> stage_flops(const ModelSpec& model, const std::vector<Interval>& stages, std::int64_t tokens,
                               bool with_head);

struct StageBalance {
  double max_over_min, max_over_mean;
  int slowest;  // the first of the costliest stages
};
StageBalance balance(const std::vector<Flops>& costs);

/// Degrees from 2 to `most` at which an even cut by layers gives every stage the same layers.
std::vector<std::int64_t> identical_degrees(const ModelSpec& model, std::int64_t most);

}  // namespace octavo
