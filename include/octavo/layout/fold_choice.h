// Which form the fold axis gives to each block of a micro-batch: weights to the tokens, or tokens to the weights and
// their sums back. `fold=D:auto` takes the one that moves fewer bytes. What a rank moves between the same ranks for the
// same micro-batch is a matter of arithmetic, so all come to the same choice without a word.
//
// Letters
//   D     ranks of the axis; c = (D-1)/D
//   e, g  bytes of an element of the compute type, and of a gradient sum (4; 8 in float64)
//   S     positions of the micro-batch, those of no token included
//   h     hidden size
//   A     S h e: one activation of all positions
//   W     matrix elements of the block that the D ranks store together
//   K     2 n d S: keys and values of the n KV heads of width d that the D ranks compute together; 0 but for attention
//   P     elements of rows that one rank computes with and another stores (layout/fold_units.h), over the D ranks
//   L     2 S g, times D: log-sum-exp and picked logit of every position from each rank
//
// What a rank sends (mean, bytes):
//                 weights forward      backward                 activations forward   backward
//   embedding     c W e                c W g                    c A                   c A
//   attention     c (W + K) e          c (W e + W g + 2 K e)    2 c A + P e / D       3 c A + P (e + g) / D
//   MLP           the same with K = 0                           the same
//   DeltaNet, experts and shared experts are counted as MLPs: the state that DeltaNet's ranks hand on under weights has
//   a fixed size, and is left out
//   head          c W e                c (W e + W g)            c (A + L)             c A
// The head makes its gradient while its loss is made, so both directions are one pass and have one form; with all its
// rows in one step (layout/fold_steps.h) the weights form moves them once. An evaluation goes forward only.
//
// That is for bytes alone. Weights spread any units evenly over the ranks; where activations would make the busiest
// rank compute more than 5% longer than an even share (layout/fold_units.h: few KV heads over many ranks), `auto` has
// weights.
//
// Where ranks read each other's memory in place, weights are read where they lie: W e counts as nothing. The embedding
// has the form that moves fewer bytes whatever the layout asks for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/layout/element_type.h"
#include "octavo/layout/layout.h"
#include "octavo/layout/param_table.h"
#include "octavo/layout/share.h"

namespace octavo {

/// Which passes a block makes.
enum class FoldPasses {
  Forward,   // an evaluation
  Together,  // what forward keeps binds backward to its form
  Apart,     // backward starts from the block's input alone and may have a form of its own
};

/// A micro-batch, as far as the choice depends on it.
struct FoldWork {
  std::int64_t positions;  // S
  ElementType compute;
  FoldPasses passes;
  bool reads_in_place;  // ranks read each other's memory where it lies
};

/// What the D ranks of an axis send, all of them together: in each direction under each form. Backward is 0 in an
/// evaluation; the head's backward is part of its forward.
struct FoldBytes {
  struct Pass {
    Bytes weights = 0, activations = 0;
  };
  Pass forward, backward;
};

/// Weights or Activations, never Auto.
struct BlockForms {
  FoldForm forward, backward;
  bool operator==(const BlockForms&) const = default;
};

/// `shares`: those of every block, on a rank of the layout (layout/placement.h); which one makes no difference.
FoldBytes fold_bytes(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares, int block,
                     const FoldWork& work);

/// The forms of all blocks: the layout's, or under `auto` those that move fewer bytes, weights of two that move the
/// same. Weights where the axis has one rank.
std::vector<BlockForms> fold_forms(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                                   const FoldWork& work);

/// "weights for attention, MLP; activations for embedding, head", and what that moves per rank.
std::string fold_forms_text(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                            const FoldWork& work);

/// From how many positions of a micro-batch on each kind of block has the weights form when it is trained and its
/// values are kept: "weights for attention from 310, MLP from 500, head never (positions of a micro-batch); activations
/// else".
std::string fold_thresholds_text(const ParamTable& table, const Layout& layout, std::span<const BlockShare> shares,
                                 ElementType compute);

}  // namespace octavo
