// What one rank stores: which elements of which slabs, where in its memory, in which buckets their gradients travel,
// and which of them it optimizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/layout/element_type.h"
#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/layout/share.h"
#include "octavo/mesh/rank_group.h"

namespace octavo {

/// Slabs start on multiples of this many elements: 64 bytes in bfloat16.
inline constexpr std::int64_t kAlignmentElements = 32;

/// The rows of a slab as they lie here. Its tensor group's rank has the rows of the units that it computes, one after
/// another, padded units included; of these the fold axis cuts, anywhere, a part for each of its ranks. Behind a
/// shorter part there is padding, as long as it takes for all slabs to lie at the same places on these ranks.
struct StoredSlab {
  std::int64_t local_offset;  // elements from the start of this rank's memory
  Interval rows;              // stored here, of those of the units
  std::int64_t unit_rows;     // of all units computed over the fold axis
};

/// Consecutive elements of a slab that are consecutive here.
struct StoredPart {
  int slab;
  Interval elements;  // of the slab
  std::int64_t local_offset;
  bool primary;  // the first rank of the tensor axis that holds them

  Interval local() const { return {local_offset, local_offset + elements.size()}; }
};

/// Consecutive blocks whose gradients travel together: the unit of overlap with backward. `local` is a multiple of
/// kAlignmentElements times the data degree, so every rank's shard of it is equally long; the gap behind the last
/// block is padding that belongs to no parameter and stays zero.
struct Bucket {
  int first_block, last_block;  // inclusive
  Interval local;               // elements of this rank's memory
  Interval shard;               // the part of it that this index of the data axis sums up or updates under ZeRO 1
};

/// Gradients that cuts of units or tokens leave partial: summed over some ranks, once a step. The same local intervals
/// on each of them.
struct GradientSum {
  std::vector<Axis> axes;       // over these; or, if none,
  int neighbours;               // over so many consecutive indices of the tensor axis
  std::vector<Interval> local;  // ascending
  std::int64_t elements() const;
};
RankGroup sum_group(const GradientSum& sum, const DeviceMesh& mesh, int rank);

struct Placement {
  std::vector<BlockShare> shares;  // of every block
  std::vector<StoredSlab> slabs;   // of every slab
  std::vector<StoredPart> parts;   // ascending in local_offset
  std::vector<Bucket> buckets;     // ascending in block
  std::vector<GradientSum> sums;   // of the elements that this rank optimizes
  std::int64_t local_elements = 0;
  std::vector<Interval> primary;    // local; over all ranks each element of a parameter is in exactly one: the norm's
  std::vector<Interval> optimized;  // local; ZeRO 1: the shards, else everything

  std::int64_t optimized_elements() const;
};

/// `bucket_bytes`: a bucket is closed once its float32 gradients reach this size.
/// Throws UsageError unless 0 <= rank < layout.world_size(), and for a block that the tensor axis does not divide under
/// `refuse`.
Placement place(const ParamTable& table, const Layout& layout, int rank, Bytes bucket_bytes = 8 << 20);

/// The axes that leave the gradient of a common vector partial: those that cut tokens between blocks, and the tensor
/// axis if it is used inside units.
std::vector<Axis> partial_axes(const Slab& common, const Layout& layout);

/// Bytes that a rank keeps between steps.
struct StateBytes {
  Bytes weights, gradients, optimizer;  // optimizer: both moments, and float32 masters under bfloat16
};
StateBytes state_bytes(const Placement& placement, ElementType compute);

/// How `num_sequences` of a step are spread over the data axis: sequences [begin, end) of index `index`. Fewer
/// sequences than ranks are legal; the last ranks then have none.
Interval sequences_of(const Layout& layout, std::int64_t num_sequences, int data_index);

}  // namespace octavo
