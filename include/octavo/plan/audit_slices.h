// What one rank has of each parameter, of the heads and of the caches, read off the placement (layout/placement.h): an
// audit counts no shard itself. Alignment and other padding that belongs to no parameter is left out.
//
// The pipeline axis gives a rank the blocks of its stage: layers cut evenly, the embedding on the first stage, the head
// on the last (a tied embedding on both).
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/placement.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// The part of a checkpoint matrix [rows, columns] that a rank stores, wherever in it the rows lie.
struct ParameterSlice {
  std::int64_t rows, columns;
  std::int64_t elements() const { return rows * columns; }
};
ParameterSlice slice_of(const ParamTable& table, const Placement& placement, const Parameter& parameter);

/// Heads that a rank computes of a block of softmax attention (query heads of KV heads) or DeltaNet (value heads of key
/// heads). Copies of a unit whose parts are not shared out have all of its parts.
struct HeadRange {
  Interval units, parts;
  bool operator==(const HeadRange&) const = default;
};
HeadRange heads_of(const BlockLayout& block, const BlockShare& share);

/// The blocks that a rank of the pipeline axis has, as a range of ParamTable::blocks(). Throws UsageError if there are
/// fewer layers than stages.
Interval blocks_of_stage(const ModelSpec& model, const ParamTable& table, const Layout& layout, int stage);

/// Elements of parameters that a rank stores between steps under ZeRO 0.
std::int64_t stored_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model);

/// Bytes between steps under the layout's ZeRO stage, an even share of what it spreads over the data axis: weights in
/// the compute type, gradients in the sum type, moments and masters.
StateBytes audit_state(std::int64_t elements, const Layout& layout, ElementType compute);

/// Elements that a rank keeps of keys and values per token of context, and of DeltaNet's states per sequence. Latent
/// attention has no blocks and is not counted.
std::int64_t cache_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model);
std::int64_t recurrent_elements(const ParamTable& table, const Layout& layout, int rank, const ModelSpec& model);

}  // namespace octavo
