#include "plan/axis_traffic.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace octavo {
namespace {

CollectiveTimes times(const DeviceMesh& mesh, const Cluster& cluster, std::initializer_list<Axis> axes) {
  return {cluster.links(mesh, std::span<const Axis>(axes.begin(), axes.size())), cluster.accelerator.timing};
}

int product(const DeviceMesh& mesh, std::initializer_list<Axis> axes) {
  int ranks = 1;
  for (const Axis axis : axes) ranks *= mesh.size(axis);
  return ranks;
}

/// `half` of a layer under fold by weights. Attention gathers keys and values with its steps.
void add_folded_weights(Traffic& traffic, const AxisGroups& groups, int degree, double elements, bool broadcasts,
                        const Speeds& speeds, const TimeRules& rules) {
  const double shard = elements / degree;
  const double weights = shard * speeds.element, gradients = shard * rules.gradient_bytes;
  if (broadcasts) {
    traffic.add(groups.fold, degree, Collective::Broadcast, weights, 2.0 * degree);
    traffic.add(groups.fold, degree, Collective::Reduce, gradients, degree);
  } else {
    traffic.add(groups.fold, degree, Collective::Send, weights, 2.0 * (degree - 1));
    traffic.add(groups.fold, degree, Collective::Send, gradients, degree - 1);
  }
}

/// Units laid end to end over ranks of equal parts, each computed where most of it lies: the share that lies elsewhere.
double foreign_share(double units, int ranks) {
  const auto count = static_cast<std::int64_t>(units);
  if (count < 1 || count % ranks == 0) return 0;
  double here = 0;
  for (std::int64_t unit = 0; unit < count; ++unit) {
    const double begin = static_cast<double>(unit) / units * ranks, end = static_cast<double>(unit + 1) / units * ranks;
    const double first = std::min(end, std::floor(begin) + 1) - begin, last = end - std::max(begin, std::ceil(end) - 1);
    const bool has_whole = std::floor(end) - std::ceil(begin) >= 1;  // a rank whose part lies within the unit
    here += has_whole ? 1 : std::max(first, last);
  }
  return 1 - here / ranks;
}

void add_activations(Traffic& traffic, const CollectiveTimes& group, int degree, double message, double times) {
  traffic.add(group, degree, Collective::AllGather, message, times);
}

}  // namespace

Traffic FoldTraffic::sum() const {
  Traffic all = weights;
  all.add(keys);
  all.add(activations);
  return all;
}

AxisGroups::AxisGroups(const DeviceMesh& mesh, const Cluster& cluster)
    : tensor(times(mesh, cluster, {Axis::Tensor})),
      sequence(times(mesh, cluster, {Axis::Sequence})),
      fold(times(mesh, cluster, {Axis::Fold})),
      expert(times(mesh, cluster, {Axis::Expert})),
      pipeline(times(mesh, cluster, {Axis::Pipeline})),
      data(times(mesh, cluster, {Axis::Data, Axis::Sequence})),
      all_tokens(times(mesh, cluster, {Axis::Data, Axis::Sequence, Axis::Expert})),
      num_data(product(mesh, {Axis::Data, Axis::Sequence})),
      num_all_tokens(product(mesh, {Axis::Data, Axis::Sequence, Axis::Expert})) {}

FoldForms fold_forms_of(const LayerWork& work, const Layout& layout, const RankShare& share, double hidden,
                        const Speeds& speeds, const TimeRules& rules) {
  if (share.fold == 1 || layout.fold_form == FoldForm::Weights) return {};
  if (layout.fold_form == FoldForm::Activations) return {false, false};
  // fold_choice.h: c (2 W e + W g + 3 K e) against 5 c A; keys and values move by weights only.
  const double activations = 5 * share.tokens * hidden * speeds.element;
  const double weight_bytes = 2 * speeds.element + rules.gradient_bytes;
  const HeldElements held = held_elements(work, share);
  const double mixer = held.mixer * weight_bytes +
                       3 * (work.is_recurrent ? 0 : work.key_width) * share.keys * share.tokens * speeds.element;
  const double ffn = (held.ffn + held.experts * share.expert) * weight_bytes;
  const double busiest =
      work.mixer_units / share.tensor < share.fold ? share.fold * share.tensor / work.mixer_units : 1;
  return {mixer <= activations || busiest > 1.05, ffn <= activations};
}

LayerTraffic layer_traffic(const LayerWork& work, const Layout& layout, const RankShare& share, double hidden,
                           const AxisGroups& groups, FoldForms forms, bool again, const Speeds& speeds,
                           const TimeRules& rules) {
  LayerTraffic traffic;
  const double activation = share.tokens * hidden * speeds.element;  // of the rank's part of the sequence, whole
  if (share.tensor > 1) {
    const double message = activation / share.fold;
    if (layout.tensor_form == TensorForm::Scatter) {
      add_activations(traffic.tensor, groups.tensor, share.tensor, message, 10);
    } else {
      traffic.tensor.add(groups.tensor, share.tensor, Collective::AllReduce, message, 4);
    }
  }
  if (share.sequence > 1) {
    if (work.is_recurrent) {
      traffic.sequence.add(groups.sequence, share.sequence, Collective::AllGather,
                           work.state_bytes * share.queries * share.sequences * share.sequence, 2);
    } else {
      const double local = share.local_tokens * speeds.element;
      const double keys = work.key_width * share.keys * local;
      const double all_heads = (2 * work.query_width * share.queries + work.key_width * share.keys) * local;
      switch (layout.sequence_form) {
        case SequenceForm::Ulysses:
          traffic.sequence.add(groups.sequence, share.sequence, Collective::AllToAll, all_heads, again ? 3 : 2);
          break;
        case SequenceForm::Ring:
          traffic.sequence.add(groups.sequence, share.sequence, Collective::Send, keys, 3.0 * (share.sequence - 1));
          break;
        case SequenceForm::Auto:
        case SequenceForm::Gather:
          traffic.sequence.add(groups.sequence, share.sequence, Collective::AllGather, keys * share.sequence, 3);
          break;
      }
    }
  }
  if (share.fold > 1) {
    const HeldElements held = held_elements(work, share);
    if (forms.mixer) {
      add_folded_weights(traffic.fold.weights, groups, share.fold, held.mixer, true, speeds, rules);
      if (!work.is_recurrent) {
        const double keys = work.key_width * share.keys * share.tokens * speeds.element;
        traffic.fold.keys.add(groups.fold, share.fold, Collective::AllGather, keys / share.fold, 3.0 * share.fold);
      } else {
        traffic.fold.keys.add(groups.fold, share.fold, Collective::AllGather,
                              work.state_bytes * share.sequences * share.fold / share.tensor, 2);
      }
    } else {
      add_activations(traffic.fold.activations, groups.fold, share.fold, activation, 5);
      // Rows that one rank computes with and another stores: to it in each direction, their gradients back.
      const double foreign = held.mixer * foreign_share(work.mixer_units * share.keys, share.fold);
      if (foreign > 0) {
        const double message = foreign / share.fold;
        traffic.fold.weights.add(groups.fold, share.fold, Collective::Send, message * speeds.element, 2);
        traffic.fold.weights.add(groups.fold, share.fold, Collective::Send, message * rules.gradient_bytes, 1);
      }
    }
    if (forms.ffn) {
      add_folded_weights(traffic.fold.weights, groups, share.fold, held.ffn + held.experts, false, speeds, rules);
    } else {
      add_activations(traffic.fold.activations, groups.fold, share.fold, activation, 5);
    }
  }
  if (share.expert > 1 && work.num_experts > 0) {
    traffic.expert.add(groups.expert, share.expert, Collective::AllToAll,
                       share.local_tokens * work.experts_per_token * hidden * speeds.element, again ? 6 : 4);
  }
  return traffic;
}

bool folds_head_by_weights(double rows, const Layout& layout, const RankShare& share, double hidden,
                           const Speeds& speeds, const TimeRules& rules) {
  if (layout.fold_form != FoldForm::Auto) return layout.fold_form == FoldForm::Weights;
  const double elements = rows * hidden * share.vocabulary;
  return elements * (2 * speeds.element + rules.gradient_bytes) < 2 * share.tokens * hidden * speeds.element;
}

LayerTraffic vocabulary_traffic(double rows, const Layout& layout, const RankShare& share, double hidden,
                                const AxisGroups& groups, const Speeds& speeds, const TimeRules& rules) {
  LayerTraffic traffic;
  const double activation = share.tokens * hidden * speeds.element;
  if (share.tensor > 1) {
    // Rows of the embedding, the head's input and its gradient.
    if (layout.tensor_form == TensorForm::Scatter) {
      add_activations(traffic.tensor, groups.tensor, share.tensor, activation / share.fold, 4);
    } else {
      traffic.tensor.add(groups.tensor, share.tensor, Collective::AllReduce, activation / share.fold, 2);
    }
  }
  if (share.fold > 1) {
    const double elements = rows * hidden * share.vocabulary, shard = elements / share.fold;
    const double returned = elements * rules.gradient_bytes, read = elements * speeds.element;
    const auto circulate = [&](double bytes, double times) {
      traffic.fold.weights.add(groups.fold, share.fold, Collective::Send, bytes, times * (share.fold - 1));
    };
    // The embedding has the form that moves fewer bytes; the head's rows come once for the loss and once for its
    // gradient.
    if (read + returned < 2 * activation) {
      circulate(shard * speeds.element, 1);
      circulate(shard * rules.gradient_bytes, 1);
    } else {
      add_activations(traffic.fold.activations, groups.fold, share.fold, activation, 2);
    }
    if (folds_head_by_weights(rows, layout, share, hidden, speeds, rules)) {
      circulate(shard * speeds.element, 2);
      circulate(shard * rules.gradient_bytes, 1);
    } else {
      add_activations(traffic.fold.activations, groups.fold, share.fold, activation, 2);
    }
  }
  return traffic;
}

}  // namespace octavo
