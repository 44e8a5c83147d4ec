// A layout as users write it: --layout "data=2:zero1 tensor=4:scatter". Axes outermost first, the last varies fastest;
// an axis is `name=degree{:option}`, one word of each set of options, in any order. No axes: one rank.
#pragma once

#include <string>
#include <string_view>

#include "octavo/mesh/device_mesh.h"

namespace octavo {

/// What the data axis keeps whole on every rank (Rajbhandari et al., ZeRO, 2020).
enum class ZeroStage {
  None,       // zero0: weights, gradients and optimizer state on every rank
  Optimizer,  // zero1: master weights and moments in 1/R intervals
  Weights,    // zero3: weights and gradients too; a layer is gathered when its turn comes
};

/// In which order the pipeline's stages take the micro-batches (plan/pipeline_schedule.h).
enum class PipelineForm {
  OneForwardOneBackward,  // 1f1b (Narayanan et al., PipeDream-Flush, 2021)
  AllForward,             // gpipe: all forward, then all backward (Huang et al., GPipe, 2019)
  ZeroBubble,             // zb: weight gradients fill the bubble (Qi et al., ZB-H1, 2023)
  Interleaved,            // interleaved-V: V parts of the model per rank (Narayanan et al., 2021)
};

/// How tokens of other ranks are seen where the sequence axis cuts them.
enum class SequenceForm {
  Auto,     // whichever is estimated to take least time
  Gather,   // keys and values all-gathered
  Ring,     // keys and values round a ring
  Ulysses,  // all-to-all from tokens to heads and back (Jacobs et al., DeepSpeed-Ulysses, 2023)
};

/// What the tensor axis does with tokens between blocks.
enum class TensorForm {
  AllReduce,  // every rank holds all of them; partial sums are all-reduced (Shoeybi et al., Megatron-LM, 2019)
  Scatter,    // 1/T each: all-gather before a block, reduce-scatter after it (Korthikanti et al., 2022)
};

/// What the tensor axis does with a block whose units (KV heads, features, vocabulary rows) it does not divide.
enum class Misfit {
  Refuse,     // an error
  Replicate,  // the block runs at degree gcd(units, T); neighbours hold the same units
  Pad,        // units of zeros fill the number up to a multiple of T
};

/// What the fold axis moves (arXiv 2604.26294).
enum class FoldForm {
  Auto,         // whichever moves fewer bytes, block by block
  Weights,      // weights to the tokens, and keys and values
  Activations,  // tokens to the weights, and their sums back
};

/// How folded weights that are used by everybody in turn come to a rank where ranks do not share memory.
enum class FoldRoute {
  Ring,    // round a ring, from neighbour to neighbour
  Direct,  // straight from their owner: another link at every step
};

/// Which tokens of a sequence a rank holds where an axis cuts it (layout/token_spans.h).
enum class TokenOrder { Zigzag, Contiguous };

struct Layout {
  DeviceMesh mesh{{}};
  ZeroStage zero = ZeroStage::None;
  PipelineForm pipeline_form = PipelineForm::OneForwardOneBackward;
  int virtual_stages = 1;  // parts of the model per pipeline rank; above 1 under Interleaved only
  SequenceForm sequence_form = SequenceForm::Auto;
  TokenOrder sequence_order = TokenOrder::Zigzag;
  TensorForm tensor_form = TensorForm::AllReduce;
  Misfit misfit = Misfit::Refuse;
  FoldForm fold_form = FoldForm::Auto;
  FoldRoute fold_route = FoldRoute::Ring;
  TokenOrder fold_order = TokenOrder::Zigzag;
  int fold_buckets = 1;  // of the KV heads of a rank's part, by weights: more gathers of fewer keys and values each

  int world_size() const { return mesh.world_size(); }
  /// "data=4:zero1 tensor=2"; options that are the default are left out. Parses back to an equal layout.
  std::string to_string() const;
};

/// Throws UsageError for a word that is no axis or option of that axis (naming the nearest), a repeated axis or option,
/// and a degree that is not a number >= 1.
Layout parse_layout(std::string_view text);

/// The layout with another degree of `axis`, which is the innermost if the layout has it not. Axes of degree 1 are left
/// out.
Layout with_degree(const Layout& layout, Axis axis, int degree);

/// Throws UsageError for what can be priced, but not run yet: degrees above 1 of pipeline, expert and sequence, ZeRO 3.
void check_runnable(const Layout& layout);

/// Both.
Layout parse_runnable_layout(std::string_view text);

}  // namespace octavo
