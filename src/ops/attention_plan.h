// From pieces to blocks: which keys do these few queries see?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octavo/ops/attention.h"
#include "ops/kernels/attention.h"

namespace octavo::ops {

inline constexpr std::int64_t kQueryBlock = 64;   // queries of a block at most
inline constexpr std::int64_t kKeyBlock = 256;    // keys that are multiplied at once at most
inline constexpr std::int64_t kKeyStripe = 4096;  // keys that are packed at once: bounds the scratch memory
inline constexpr std::int64_t kPadding = 16;      // blocks are padded to multiples of it; divides the three above

inline std::int64_t padded(std::int64_t count) {
  return (count + kPadding - 1) / kPadding * kPadding;
}

/// Query `row` of the block sees the keys [begin, min(end, diagonal + row)).
struct KeySegment {
  std::int64_t begin, end, diagonal;
};

struct QueryBlock {
  std::int64_t begin, rows;  // rows <= kQueryBlock
  std::vector<KeySegment> segments;
};

/// Blocks in ascending order, cut so that all queries of a block belong to the same pieces; queries in no piece are in
/// no block.
std::vector<QueryBlock> plan_attention(std::span<const AttentionPiece> pieces);

/// The part of `segment` within the keys [begin, end), empty if begin >= end of the result.
KeySegment within(const KeySegment& segment, std::int64_t begin, std::int64_t end);

/// Pairs of a query and a key, of one query head.
struct PairCount {
  std::int64_t visible;   // that the pieces let a query see
  std::int64_t computed;  // that the products compute, >= visible: padded blocks, and blocks across the diagonal
};

/// Of `blocks`, which plan_attention() made of `pieces`, over `num_keys` keys.
PairCount count_pairs(std::span<const AttentionPiece> pieces, std::span<const QueryBlock> blocks,
                      std::int64_t num_keys);

/// Books the FLOPs of `num_products` products over these pairs, for num_heads query heads of `width`.
void count_attention_flops(const PairCount& pairs, int num_products, std::int64_t num_heads, std::int64_t width);

}  // namespace octavo::ops
