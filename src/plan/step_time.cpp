#include "octavo/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/spec/flops.h"
#include "plan/axis_traffic.h"
#include "plan/stages.h"

namespace octavo {

struct TimeModel::Sizes {
  TrainingJob job;
  Cluster cluster;
  TimeRules rules;
  Speeds speeds;
  double peak = 0;  // FLOP/s, nominal
  double hidden = 0, vocabulary = 0;
  bool tied = false;
  LayerKinds kinds;
  Flops forward = 0;                                // of the model, one sequence
  Flops mixer_matmul = 0, mixer_core = 0, ffn = 0;  // of its layers
  Flops again(const StashPolicy& stash) const;
};

/// What a policy computes again, of one sequence; norms and activation functions are no FLOPs.
Flops TimeModel::Sizes::again(const StashPolicy& stash) const {
  switch (stash.kind) {
    case StashPolicy::Kind::Keep:
      return 0;
    case StashPolicy::Kind::Recompute:
      return mixer_matmul + mixer_core + ffn;
    case StashPolicy::Kind::Named:
      return (stash.keeps("attention") ? 0 : mixer_core) + (stash.keeps("qkv") ? 0 : mixer_matmul) +
             (stash.keeps("gate_up") ? 0 : ffn * 2 / 3);
  }
  return 0;
}

namespace {

double nominal_peak(const Accelerator& accelerator, const TimeRules& rules, ElementType compute) {
  const std::optional<HardwareConstant>& peak = rules.precision == "fp8"           ? accelerator.fp8_flops
                                                : compute == ElementType::BFloat16 ? accelerator.bf16_flops
                                                                                   : accelerator.fp32_flops;
  if (!peak || compute == ElementType::Float64) {
    throw UsageError(cat("[plan] ", accelerator.name, " has no peak in the catalogue for ", element_type_name(compute),
                         "; use bf16, or a cluster file with the constant"));
  }
  return peak->value;
}

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

/// A layer's forward and backward on a rank, computing and waiting.
struct LayerStep {
  PassTime forward;
  double again = 0;  // recompute
  double host = 0;   // that the host keeps the device waiting
  LayerTraffic traffic;
  double tensor_exposed = 0, sequence_exposed = 0, fold_exposed = 0, expert_exposed = 0;

  double backward() const { return 2 * forward.matmul + 2.5 * forward.core + 2 * forward.memory; }
  double computing() const { return forward.sum() + backward() + again; }
  double exposed() const { return tensor_exposed + sequence_exposed + fold_exposed + expert_exposed; }
  double total() const { return computing() + exposed() + host; }
};

}  // namespace

/// Of one micro-batch, per kind of layer, and the head.
struct StepParts {
  RankShare share;
  int micro_batches = 1;
  double mean_fill = 1;  // of the micro-batches: the last may be smaller
  std::vector<LayerStep> layers;
  LayerStep head;
};

namespace {

/// What overlapped communication shows beside `computing`.
double exposed_part(double communication, double computing, const TimeRules& rules, double share) {
  const double window = rules.overlap * computing;
  return std::max(0.0, communication - window) + share * std::min(communication, window);
}

class StepCount {
 public:
  StepCount(const StepPlan& plan, const TrainingJob& job, const AxisGroups& axis_groups, const TimeRules& rules,
            const Speeds& speeds, double hidden)
      : plan_(plan),
        layout_(plan.layout),
        rules_(rules),
        speeds_(speeds),
        hidden_(hidden),
        groups(axis_groups),
        reads_batch(layout_.mesh.size(Axis::Data) * layout_.mesh.size(Axis::Expert)) {
    if (plan.micro_batch < 1) throw UsageError(cat("[plan] a micro-batch of ", plan.micro_batch, "; use at least 1"));
    const double sequences = std::ceil(static_cast<double>(job.batch) / reads_batch);
    micro_batches = static_cast<int>(std::ceil(sequences / static_cast<double>(plan.micro_batch)));
    share_.sequences = std::min(sequences, static_cast<double>(plan.micro_batch));
    mean_fill = sequences / (micro_batches * share_.sequences);
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
    share.features =
        work.num_experts > 0 ? unit_share(work.num_experts, share.tensor, layout_.misfit) : 1.0 / share.tensor;
    share.core = share.queries / (share.sequence * share.fold);
    const bool full = plan_.stash.kind == StashPolicy::Kind::Recompute;
    const FoldForms forms = fold_forms_of(work, layout_, share, hidden_, speeds_, rules_);
    LayerStep step;
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
    step.traffic = layer_traffic(work, layout_, share, hidden_, groups, forms, full, speeds_, rules_);
    step.tensor_exposed = rules_.tensor_exposed * step.traffic.tensor.seconds / rules_.collective_share;
    step.sequence_exposed = rules_.sequence_exposed * step.traffic.sequence.seconds / rules_.collective_share;
    step.expert_exposed = rules_.expert_exposed * step.traffic.expert.seconds / rules_.collective_share;
    step.fold_exposed = exposed_part(step.traffic.fold.seconds / rules_.collective_share, step.computing(), rules_,
                                     rules_.fold_exposed);
    step.host = std::max(0.0, rules_.layer_launch * (full ? 4 : 3) - step.computing() - step.exposed());
    return step;
  }

  LayerStep head(double vocabulary) const {
    LayerStep step;
    const double width = vocabulary / share_.tensor;
    step.forward.matmul =
        share_.fold * matmul_seconds(share_.local_tokens, hidden_, width / share_.fold, speeds_, rules_);
    step.forward.memory = rules_.logit_passes / 3 * share_.local_tokens * width * 4 / speeds_.memory;
    step.traffic = vocabulary_traffic(vocabulary, layout_, share_, hidden_, groups, speeds_, rules_);
    step.tensor_exposed = rules_.tensor_exposed * step.traffic.tensor.seconds / rules_.collective_share;
    step.fold_exposed = exposed_part(step.traffic.fold.seconds / rules_.collective_share, step.computing(), rules_,
                                     rules_.fold_exposed);
    return step;
  }

  const RankShare& share() const { return share_; }

 private:
  /// Fold by activations: a rank computes its units for all tokens; by weights, all units for its own.
  RankShare half(RankShare share, const LayerWork& work, bool by_weights) const {
    if (share.fold == 1 || by_weights) return share;
    const double units = std::max(work.mixer_units * share.keys, 1.0);
    const double busiest = std::ceil(units / share.fold) / units;
    share.queries *= busiest;
    share.keys *= busiest;
    share.features /= share.fold;
    share.core = share.queries / share.sequence;
    return share;
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

 public:
  const AxisGroups& groups;
  double reads_batch;  // ranks that read other sequences
  int micro_batches;
  double mean_fill;  // of the micro-batches: the last may be smaller
};

void add(AxisTime& axis, const Traffic& traffic, double exposed, double times, double share) {
  axis.bytes += times * traffic.bytes;
  axis.exposed += times * exposed;
  axis.hidden += times * std::max(0.0, traffic.seconds / share - exposed);
  if (traffic.bytes > 0) axis.algorithm = traffic.algorithm;
}

void add(StepTime& step, const LayerStep& layer, double times, double share) {
  step.matmul += times * 3 * layer.forward.matmul;
  step.attention += times * 3.5 * layer.forward.core;
  step.memory_bound += times * 3 * layer.forward.memory;
  step.recompute += times * layer.again;
  step.host += times * layer.host;
  const auto at = [&step](Axis axis) -> AxisTime& { return step.axes[static_cast<int>(axis)]; };
  add(at(Axis::Tensor), layer.traffic.tensor, layer.tensor_exposed, times, share);
  add(at(Axis::Sequence), layer.traffic.sequence, layer.sequence_exposed, times, share);
  add(at(Axis::Fold), layer.traffic.fold, layer.fold_exposed, times, share);
  add(at(Axis::Expert), layer.traffic.expert, layer.expert_exposed, times, share);
}

PipelineKind kind_of(PipelineForm form) {
  switch (form) {
    case PipelineForm::AllForward:
      return PipelineKind::GPipe;
    case PipelineForm::ZeroBubble:
      return PipelineKind::ZeroBubbleH1;
    case PipelineForm::Interleaved:
      return PipelineKind::Interleaved;
    case PipelineForm::OneForwardOneBackward:
      return PipelineKind::OneForwardOneBackward;
  }
  throw InternalError("[plan] unknown pipeline form");
}

}  // namespace

Seconds StepTime::exposed() const {
  Seconds sum = 0;
  for (const AxisTime& time : axes) sum += time.exposed;
  return sum;
}

Seconds StepTime::computing() const {
  return matmul + attention + memory_bound + recompute + head + optimizer + fixed;
}

TimeModel::TimeModel(const ModelSpec& model, const TrainingJob& job, const Cluster& cluster, const TimeRules& rules) {
  if (job.sequence_length < 1 || job.batch < 1) {
    throw UsageError(
        cat("[plan] a batch of ", job.batch, " x ", job.sequence_length, " tokens; use at least 1 of both"));
  }
  auto sizes = std::make_unique<Sizes>();
  sizes->job = job;
  sizes->cluster = cluster;
  sizes->rules = rules;
  sizes->peak = nominal_peak(cluster.accelerator, rules, job.compute);
  sizes->speeds = {.matmul = sizes->peak * rules.matmul_share,
                   .attention = sizes->peak * rules.attention_share,
                   .memory = cluster.accelerator.memory_bandwidth.value * rules.memory_share,
                   .element = static_cast<double>(element_bytes(job.compute))};
  sizes->hidden = static_cast<double>(model.hidden_size);
  sizes->vocabulary = static_cast<double>(model.vocab_size);
  sizes->tied = model.tied_embeddings;
  sizes->kinds = LayerKinds(model, job.sequence_length);
  const std::int64_t lengths[] = {job.sequence_length};
  sizes->forward = forward_flops(model, lengths);
  const StageLayers all = sizes->kinds.cut(1, 1).front();
  const auto tokens = static_cast<double>(job.sequence_length);
  for (std::size_t kind = 0; kind < all.layers.size(); ++kind) {
    const LayerWork& work = sizes->kinds.kinds()[kind];
    const double used_experts = work.num_experts > 0 ? work.experts_per_token / work.num_experts : 0;
    const double ffn_used = work.ffn_elements - work.expert_elements * (1 - used_experts);
    sizes->mixer_matmul += all.layers[kind] * 2 * work.mixer_elements * tokens;
    sizes->mixer_core += all.layers[kind] * work.mixer_core;
    sizes->ffn += all.layers[kind] * 2 * ffn_used * tokens;
  }
  sizes_ = std::move(sizes);
}

TimeModel::~TimeModel() = default;
TimeModel::TimeModel(TimeModel&&) noexcept = default;

StepTime TimeModel::step(const StepPlan& plan) const {
  const AxisGroups groups(plan.layout.mesh, sizes_->cluster);
  return step(plan, groups, *parts(plan, groups));
}

std::shared_ptr<const StepParts> TimeModel::parts(const StepPlan& plan, const AxisGroups& groups) const {
  const StepCount count(plan, sizes_->job, groups, sizes_->rules, sizes_->speeds, sizes_->hidden);
  auto parts = std::make_shared<StepParts>();
  parts->share = count.share();
  parts->micro_batches = count.micro_batches;
  parts->mean_fill = count.mean_fill;
  for (const LayerWork& work : sizes_->kinds.kinds()) parts->layers.push_back(count.layer(work));
  parts->head = count.head(sizes_->vocabulary);
  return parts;
}

StepTime TimeModel::step(const StepPlan& plan, const AxisGroups& groups, const StepParts& parts) const {
  const Sizes& sizes = *sizes_;
  const TimeRules& rules = sizes.rules;
  const int stages = plan.layout.mesh.size(Axis::Pipeline), chunks = plan.layout.virtual_stages;
  const int tensor = plan.layout.mesh.size(Axis::Tensor), fold = plan.layout.mesh.size(Axis::Fold);

  const std::vector<LayerStep>& layers = parts.layers;
  const LayerStep& head = parts.head;

  // Borders between stages
  double border = 0;
  Traffic border_traffic;
  if (stages > 1) {
    const double cut = plan.layout.tensor_form == TensorForm::Scatter ? tensor : 1;
    const double message = parts.share.local_tokens * sizes.hidden * sizes.speeds.element / cut;
    border_traffic.add(groups.pipeline, stages, Collective::Send, message, 2.0 * chunks);
    border = rules.pipeline_exposed * border_traffic.seconds / rules.collective_share;
    border += rules.border_latency * chunks * std::min(stages - 1, 2) / 2;
  }

  const std::vector<StageLayers> cut = sizes.kinds.cut(stages, chunks);
  std::vector<StageTimes> times;
  int slowest = 0;
  for (int stage = 0; stage < stages; ++stage) {
    double forward = 0, total = 0;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
      const double n = cut[stage].layers[kind];
      forward += n * (layers[kind].forward.sum() + layers[kind].exposed() / 3 + layers[kind].host / 3);
      total += n * layers[kind].total();
    }
    if (stage == stages - 1) {
      forward += head.forward.sum();
      total += head.total();
    }
    total = (total + border) * parts.mean_fill;
    forward = (forward + border / 2) * parts.mean_fill;
    times.push_back({forward, (total - forward) / 2, (total - forward) / 2});
    if (times.back().sum() > times[slowest].sum()) slowest = stage;
  }

  StepTime step;
  const double rounds = parts.micro_batches * parts.mean_fill;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    add(step, layers[kind], rounds * cut[slowest].layers[kind], rules.collective_share);
  }
  if (slowest == stages - 1) {
    step.head = rounds * head.computing();
    StepTime rest;  // its parts are in `head`; only its communication counts apart
    add(rest, head, rounds, rules.collective_share);
    for (std::size_t i = 0; i < rest.axes.size(); ++i) {
      step.axes[i].bytes += rest.axes[i].bytes;
      step.axes[i].hidden += rest.axes[i].hidden;
      step.axes[i].exposed += rest.axes[i].exposed;
    }
  }
  auto& pipeline = step.axes[static_cast<int>(Axis::Pipeline)];
  add(pipeline, border_traffic, border, rounds, rules.collective_share);
  const double busy = parts.micro_batches * times[slowest].sum();
  if (stages > 1) {
    const PipelineShape shape{kind_of(plan.layout.pipeline_form), stages, parts.micro_batches, chunks};
    step.bubble = std::max(0.0, pipeline_makespan(shape, times) - busy);
  }

  // Once a step, or per micro-batch under ZeRO 3: gradients and weights over the ranks that read other tokens
  double dense = 0, experts = 0;  // elements of the slowest stage on one rank of tensor and fold
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    const LayerWork& work = sizes.kinds.kinds()[kind];
    const double n = cut[slowest].layers[kind];
    dense += n * (work.mixer_elements + work.ffn_elements - work.expert_elements);
    experts += n * work.expert_elements / plan.layout.mesh.size(Axis::Expert);
  }
  const double rows = sizes.vocabulary * sizes.hidden;
  if (stages == 1) dense += sizes.tied ? rows : 2 * rows;
  if (stages > 1 && (slowest == 0 || slowest == stages - 1)) dense += rows;
  dense /= tensor * fold;
  experts /= tensor * fold;
  Traffic gradients;
  double data_exposed = 0;
  const auto exchange = [&](Collective kind, double bytes_per_element, double repeats) {
    gradients.add(groups.all_tokens, groups.num_all_tokens, kind, dense * bytes_per_element, repeats);
    gradients.add(groups.data, groups.num_data, kind, experts * bytes_per_element, repeats);
  };
  const double element = sizes.speeds.element;
  if (plan.layout.zero == ZeroStage::Weights) {
    exchange(Collective::AllGather, element, 2.0 * parts.micro_batches);
    exchange(Collective::ReduceScatter, rules.gradient_bytes, parts.micro_batches);
    const double seconds = gradients.seconds / rules.collective_share;
    data_exposed = exposed_part(seconds, busy, rules, rules.data_exposed);
  } else {
    exchange(Collective::ReduceScatter, rules.gradient_bytes, 1);
    exchange(Collective::AllGather, plan.layout.zero == ZeroStage::None ? rules.gradient_bytes : element, 1);
    data_exposed = rules.data_exposed * gradients.seconds / rules.collective_share;
  }
  add(step.axes[static_cast<int>(Axis::Data)], gradients, data_exposed, 1, rules.collective_share);

  const bool cuts_optimizer = plan.layout.zero != ZeroStage::None;
  step.optimizer =
      (dense / (cuts_optimizer ? groups.num_all_tokens : 1) + experts / (cuts_optimizer ? groups.num_data : 1)) *
      rules.optimizer_bytes / sizes.speeds.memory;
  step.fixed = rules.step_latency;
  step.total = step.matmul + step.attention + step.memory_bound + step.recompute + step.host + step.head +
               step.optimizer + step.fixed + step.bubble + step.exposed();

  step.model = 3 * sizes.forward * static_cast<double>(sizes.job.batch);
  step.executed = step.model + sizes.again(plan.stash) * static_cast<double>(sizes.job.batch);
  const double world = plan.layout.world_size();
  step.tokens_per_second =
      static_cast<double>(sizes.job.batch) * static_cast<double>(sizes.job.sequence_length) / step.total;
  step.mfu = step.model / (step.total * sizes.peak * world);
  step.hfu = step.executed / (step.total * sizes.peak * world);
  return step;
}

}  // namespace octavo
