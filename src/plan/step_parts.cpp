#include "plan/step_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

/// Share of units that the busiest rank of `degree` computes under the layout's word for a misfit.
double unit_share(double units, int degree, Misfit misfit) {
  const auto count = static_cast<std::int64_t>(units);
  if (degree == 1 || count % degree == 0) return 1.0 / degree;
  if (misfit == Misfit::Pad) return std::ceil(units / degree) / units;
  return 1.0 / static_cast<double>(std::gcd(count, static_cast<std::int64_t>(degree)));
}

/// Query heads of shared KV heads are split over their replicas where they divide.
double query_share(const LayerWork& work, int degree, Misfit misfit) {
  const double share = unit_share(work.mixer_units, degree, misfit);
  const double replicas = share * degree;
  const bool splits = misfit != Misfit::Pad && std::fmod(work.parts_per_unit, replicas) == 0;
  return splits ? 1.0 / degree : share;
}

/// Counts what a plan makes of a micro-batch.
class StepCount {
 public:
  StepCount(const StepPlan& plan, const TrainingJob& job, const AxisGroups& groups, const TimeRules& rules,
            const Speeds& speeds, double hidden)
      : plan_(plan), layout_(plan.layout), rules_(rules), speeds_(speeds), hidden_(hidden), groups_(groups) {
    const double readers = layout_.mesh.size(Axis::Data) * layout_.mesh.size(Axis::Expert);  // of other sequences
    if (plan.micro_batch < 1) throw UsageError(cat("[plan] a micro-batch of ", plan.micro_batch, "; use at least 1"));
    const double sequences = std::ceil(static_cast<double>(job.batch) / readers);
    parts_.micro_batches = static_cast<int>(std::ceil(sequences / static_cast<double>(plan.micro_batch)));
    share_.sequences = std::min(sequences, static_cast<double>(plan.micro_batch));
    parts_.mean_fill = sequences / (parts_.micro_batches * share_.sequences);
    share_.tensor = layout_.mesh.size(Axis::Tensor);
    share_.sequence = layout_.mesh.size(Axis::Sequence);
    share_.fold = layout_.mesh.size(Axis::Fold);
    share_.expert = layout_.mesh.size(Axis::Expert);
    share_.tokens = share_.sequences * static_cast<double>(job.sequence_length) / share_.sequence;
    share_.local_tokens = share_.tokens / share_.fold;
  }

  LayerStep layer(const LayerWork& work) const {
    RankShare share = share_;
    share.queries = query_share(work, share.tensor, layout_.misfit);
    share.keys = unit_share(work.mixer_units, share.tensor, layout_.misfit);
    share.features = unit_share(work.dense_units, share.tensor, layout_.misfit);
    share.experts =
        work.num_experts > 0 ? unit_share(work.num_experts / share.expert, share.tensor, layout_.misfit) : 1;
    share.core = share.queries / (share.sequence * share.fold);
    const bool full = plan_.stash.kind == StashPolicy::Kind::Recompute;
    const FoldForms forms = fold_forms_of(work, layout_, share, hidden_, speeds_, rules_);
    LayerStep step;
    step.held = held_elements(work, share);
    const PassTime mixer =
        mixer_pass(work, half(share, work, forms.mixer), speeds_, rules_, hidden_, forms.mixer && share.fold > 1);
    const PassTime ffn =
        ffn_pass(work, half(share, work, forms.ffn), speeds_, rules_, hidden_, forms.ffn && share.fold > 1);
    step.forward = {mixer.matmul + ffn.matmul, mixer.core + ffn.core, mixer.memory + ffn.memory};
    if (share.fold == 1 && layout_.tensor_form == TensorForm::Scatter) {
      step.forward.memory -= rules_.hidden_passes / 3 * share.local_tokens * (1 - 1.0 / share.tensor) * hidden_ *
                             speeds_.element / speeds_.memory;
    }
    step.again = recompute(step.forward, mixer, ffn);
    step.traffic = layer_traffic(work, layout_, share, hidden_, groups_, forms, full, speeds_, rules_);
    hide(step);
    step.host = std::max(0.0, rules_.layer_launch * (full ? 4 : 3) - step.computing() - step.exposed());
    return step;
  }

  LayerStep head(double vocabulary) const {
    LayerStep step;
    const double width = vocabulary * share_.vocabulary;
    const bool by_weights = folds_head_by_weights(vocabulary, layout_, share_, hidden_, speeds_, rules_);
    step.forward.matmul =
        by_weights ? share_.fold * matmul_seconds(share_.local_tokens, hidden_, width / share_.fold, speeds_, rules_)
                   : matmul_seconds(share_.tokens, hidden_, width / share_.fold, speeds_, rules_);
    step.forward.memory = rules_.logit_passes / 3 * share_.local_tokens * width * 4 / speeds_.memory;
    step.traffic = vocabulary_traffic(vocabulary, layout_, share_, hidden_, groups_, speeds_, rules_);
    hide(step);
    return step;
  }

  StepParts run(double vocabulary, std::span<const LayerWork> kinds) {
    share_.vocabulary = unit_share(vocabulary, share_.tensor, layout_.misfit);
    parts_.share = share_;
    for (const LayerWork& work : kinds) parts_.layers.push_back(layer(work));
    parts_.head = head(vocabulary);
    return std::move(parts_);
  }

 private:
  /// Fold by activations: a rank computes its units for all tokens; by weights, all units for its own.
  RankShare half(RankShare share, const LayerWork& work, bool by_weights) const {
    if (share.fold == 1 || by_weights) return share;
    const double units = std::max(work.mixer_units * share.keys, 1.0);
    const double busiest = std::ceil(units / share.fold) / units;
    share.queries *= busiest;
    share.keys *= busiest;
    share.features /= share.fold;
    share.experts /= share.fold;
    share.core = share.queries / share.sequence;
    return share;
  }

  /// Of each axis a share shows, and all together hide no more than there is computing to hide them. Each part of fold
  /// as the same traffic of another axis, of which there are runs.
  void hide(LayerStep& step) const {
    const LayerTraffic& traffic = step.traffic;
    struct Part {
      double seconds, share;
      double* exposed;
    };
    const std::array parts = {
        Part{traffic.tensor.seconds, rules_.tensor_exposed, &step.tensor_exposed},
        Part{traffic.sequence.seconds, rules_.sequence_exposed, &step.sequence_exposed},
        Part{traffic.expert.seconds, rules_.expert_exposed, &step.expert_exposed},
        Part{traffic.fold.weights.seconds, rules_.data_exposed, &step.fold_exposed},
        Part{traffic.fold.keys.seconds, rules_.sequence_exposed, &step.fold_exposed},
        Part{traffic.fold.activations.seconds, rules_.tensor_exposed, &step.fold_exposed},
    };
    const double window = rules_.overlap * step.computing();
    double wanted = 0;
    for (const Part& part : parts) wanted += hidden_part(part.seconds / rules_.collective_share, window, part.share);
    const double granted = wanted > window ? window / wanted : 1;
    for (const Part& part : parts) {
      const double seconds = part.seconds / rules_.collective_share;
      const double hidden = granted * hidden_part(seconds, window, part.share);
      *part.exposed += seconds - hidden;
      step.hidden += hidden;
    }
  }

  double recompute(const PassTime& all, const PassTime& mixer, const PassTime& ffn) const {
    switch (plan_.stash.kind) {
      case StashPolicy::Kind::Keep:
        return 0;
      case StashPolicy::Kind::Recompute:
        return all.sum();
      case StashPolicy::Kind::Named: {
        double again = all.memory;
        if (!plan_.stash.keeps("attention")) again += mixer.core;
        if (!plan_.stash.keeps("qkv")) again += mixer.matmul;
        if (!plan_.stash.keeps("gate_up")) again += ffn.matmul * 2 / 3;
        return again;
      }
    }
    return 0;
  }

  const StepPlan& plan_;
  const Layout& layout_;
  const TimeRules& rules_;
  const Speeds& speeds_;
  double hidden_;
  RankShare share_;
  StepParts parts_;

  const AxisGroups& groups_;
};

}  // namespace

double hidden_part(double communication, double window, double share) {
  return (1 - share) * std::min(communication, std::max(0.0, window));
}

StepParts step_parts(const StepPlan& plan, const TrainingJob& job, const AxisGroups& groups, const TimeRules& rules,
                     const Speeds& speeds, double hidden, double vocabulary, std::span<const LayerWork> kinds) {
  return StepCount(plan, job, groups, rules, speeds, hidden).run(vocabulary, kinds);
}

}  // namespace octavo
