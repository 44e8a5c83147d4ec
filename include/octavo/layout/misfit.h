// What it costs to run blocks that the tensor axis does not divide: the price of `replicate` and `pad`.
//
// Everything is the excess over 1/T of one rank's. Letters: T ranks of the tensor axis, U units of a block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/layout/share.h"

namespace octavo {

/// Blocks of one kind that do not divide. Totals are over these blocks and the T ranks of one tensor group; a rank has
/// 1/T of them.
struct MisfitPrice {
  BlockKind kind;
  std::int64_t num_units;  // U
  int num_blocks;
  BlockShare share;                  // of the first rank
  std::int64_t extra_elements = 0;   // weights stored beyond the model's: T * stored - elements
  std::int64_t extra_products = 0;   // weights multiplied with each token beyond the model's
  std::int64_t extra_heads = 0;      // query heads that attend, value heads that recur, beyond the model's
  std::int64_t extra_cache = 0;      // elements of keys and values per token of context beyond the model's
  std::int64_t extra_state = 0;      // elements of recurrent states per sequence beyond the model's
  std::int64_t summed_elements = 0;  // gradients that are summed over neighbours because these hold the same
};

/// One entry per kind of block that does not divide; none under a layout that fits. Throws UsageError under `refuse` if
/// there is one.
std::vector<MisfitPrice> misfit_prices(const ParamTable& table, const Layout& layout);

/// The price in bytes and FLOPs, per rank.
struct MisfitBytes {
  double weights, gradients, optimizer;  // mean over the ranks
  double wire;                           // sent in a step: the sum over neighbours
  double kv_cache;                       // per token of context
  double recurrent;                      // per sequence
  Flops matmul;                          // wasted per token, forward
};
MisfitBytes misfit_bytes(const MisfitPrice& price, const Layout& layout, ElementType compute);

/// Elements of keys and values that a share of a block keeps per token of context; 0 but for softmax attention. Units
/// of zeros count: they are kept like the others.
std::int64_t cached_per_token(const BlockLayout& block, const BlockShare& share);
/// Elements of recurrent state of a share of a block, per sequence; 0 but for DeltaNet.
std::int64_t recurrent_state(const BlockLayout& block, const BlockShare& share);

/// One line for people: what happens, and what it costs per rank.
std::string misfit_text(const MisfitPrice& price, const Layout& layout, ElementType compute);

}  // namespace octavo
