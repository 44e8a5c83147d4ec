// What the axes of a layout send for one layer, one micro-batch, forward and backward: the second half of
// plan/step_time.h's list.
#pragma once

#include "octavo/plan/job.h"
#include "plan/layer_time.h"

namespace octavo {

/// The groups of a mesh's axes on a cluster.
struct AxisGroups {
  AxisGroups(const DeviceMesh& mesh, const Cluster& cluster);
  CollectiveTimes tensor, sequence, fold, expert, pipeline, data, all_tokens;  // data; data, sequence and expert
  int num_data, num_all_tokens;
};

/// By what hides it: weights are known ahead of time, as those of ZeRO 3; keys and values, and activations, are not, no
/// more than those of the sequence and tensor axes.
struct FoldTraffic {
  Traffic weights, keys, activations;
  Traffic sum() const;
};

struct LayerTraffic {
  Traffic tensor, sequence, expert;
  FoldTraffic fold;
};

/// Which form fold takes for the two halves of a layer: by weights?
struct FoldForms {
  bool mixer = true, ffn = true;
};

/// The layout's form, or under auto the one that moves fewer bytes forward and backward (layout/fold_choice.h).
FoldForms fold_forms_of(const LayerWork& work, const Layout& layout, const RankShare& share, double hidden,
                        const Speeds& speeds, const TimeRules& rules);

/// `again`: a recompute runs the forward a second time.
LayerTraffic layer_traffic(const LayerWork& work, const Layout& layout, const RankShare& share, double hidden,
                           const AxisGroups& groups, FoldForms forms, bool again, const Speeds& speeds,
                           const TimeRules& rules);

/// Whether fold brings the head's rows to the tokens: twice, for the loss and for its gradient, and gradients back.
bool folds_head_by_weights(double rows, const Layout& layout, const RankShare& share, double hidden,
                           const Speeds& speeds, const TimeRules& rules);

/// The head's rows and logits, and the embedding's rows.
LayerTraffic vocabulary_traffic(double rows, const Layout& layout, const RankShare& share, double hidden,
                                const AxisGroups& groups, const Speeds& speeds, const TimeRules& rules);

}  // namespace octavo
