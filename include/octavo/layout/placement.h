// What one rank stores: which elements of which slabs, where in its memory, in which buckets their gradients travel,
// and which of them it optimizes.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/layout/element_type.h"
#include "octavo/layout/interval.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"

namespace octavo {

/// Parts start on multiples of this many elements: 64 bytes in bfloat16.
inline constexpr std::int64_t kAlignmentElements = 32;

struct StoredPart {
  int slab;
  Interval elements;          // of the slab
  std::int64_t local_offset;  // elements from the start of this rank's memory
};

/// Consecutive blocks whose gradients travel together: the unit of overlap with backward. `local` is a multiple of
/// kAlignmentElements times the data degree, so every rank's part of it is equally long; the gap behind the last
/// block is padding that belongs to no parameter and stays zero.
struct Bucket {
  int first_block, last_block;  // inclusive
  Interval local;               // elements of this rank's memory
};

struct Placement {
  std::vector<StoredPart> parts;  // ascending in slab and offset
  std::vector<Bucket> buckets;    // ascending in block
  std::int64_t local_elements = 0;
  std::vector<Interval> primary;    // local; over all ranks of the data axis each element is in exactly one: the norm's
  std::vector<Interval> optimized;  // local; ZeRO 1: the primary ones, else everything

  std::int64_t optimized_elements() const;
};

/// `bucket_bytes`: a bucket is closed once its float32 gradients reach this size.
/// Throws UsageError unless 0 <= rank < layout.world_size().
Placement place(const ParamTable& table, const Layout& layout, int rank, Bytes bucket_bytes = 8 << 20);

/// Bytes that a rank keeps between steps.
struct StateBytes {
  Bytes weights, gradients, optimizer;  // optimizer: both moments, and float32 masters under bfloat16
};
StateBytes state_bytes(const Placement& placement, ElementType compute);

/// How `num_sequences` of a step are spread over the data axis: sequences [begin, end) of index `index`. Fewer
/// sequences than ranks are legal; the last ranks then have none.
Interval sequences_of(const Layout& layout, std::int64_t num_sequences, int data_index);

}  // namespace octavo
