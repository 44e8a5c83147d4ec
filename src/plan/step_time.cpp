#include "octavo/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/spec/flops.h"
#include "plan/stages.h"
#include "plan/step_parts.h"

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
  add(at(Axis::Fold), layer.traffic.fold.sum(), layer.fold_exposed, times, share);
  add(at(Axis::Expert), layer.traffic.expert, layer.expert_exposed, times, share);
}

/// What crosses the border of two stages, per micro-batch.
struct Border {
  Traffic traffic;
  Seconds seconds = 0;  // of the traffic, hidden or not
  Seconds latency = 0;  // beside it, never hidden
};

Border border_of(const StepPlan& plan, const AxisGroups& groups, const StepParts& parts, double hidden, double element,
                 const TimeRules& rules) {
  Border border;
  const int stages = plan.layout.mesh.size(Axis::Pipeline), chunks = plan.layout.virtual_stages;
  if (stages == 1) return border;
  const double cut = plan.layout.tensor_form == TensorForm::Scatter ? plan.layout.mesh.size(Axis::Tensor) : 1;
  const double message = parts.share.local_tokens * hidden * element / cut;
  border.traffic.add(groups.pipeline, stages, Collective::Send, message, 2.0 * chunks);
  border.seconds = border.traffic.seconds / rules.collective_share;
  border.latency = rules.border_latency * chunks * std::min(stages - 1, 2) / 2;
  return border;
}

/// The stages' times of one micro-batch, and of the slowest what its ranks show of the border, and the computing that
/// hides nothing yet.
struct Pipeline {
  std::vector<StageTimes> times;
  int slowest = 0;
  Seconds border_exposed = 0, room = 0;
};

Pipeline pipeline_of(const StepParts& parts, const StageLayers& cut, int stages, const Border& border,
                     const TimeRules& rules) {
  Pipeline pipeline;
  pipeline.times.reserve(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    double forward = 0, total = 0, computing = 0, hidden = 0;
    for (std::size_t kind = 0; kind < parts.layers.size(); ++kind) {
      const LayerStep& layer = parts.layers[kind];
      const double n = cut.at(stage, kind);
      forward += n * (layer.forward.sum() + layer.exposed() / 3 + layer.host / 3);
      total += n * layer.total();
      computing += n * layer.computing();
      hidden += n * layer.hidden;
    }
    if (stage == stages - 1) {
      forward += parts.head.forward.sum();
      total += parts.head.total();
      computing += parts.head.computing();
      hidden += parts.head.hidden;
    }
    const double room = rules.overlap * computing - hidden;
    const double border_hidden = hidden_part(border.seconds, room, rules.pipeline_exposed);
    const double border_exposed = border.seconds - border_hidden + border.latency;
    total = (total + border_exposed) * parts.mean_fill;
    forward = (forward + border_exposed / 2) * parts.mean_fill;
    pipeline.times.push_back({forward, (total - forward) / 2, (total - forward) / 2});
    if (stage > 0 && pipeline.times.back().sum() <= pipeline.times[pipeline.slowest].sum()) continue;
    pipeline.slowest = stage;
    pipeline.border_exposed = border_exposed;
    pipeline.room = room - border_hidden;
  }
  return pipeline;
}

/// Gradients and weights over the ranks that hold the same: once a step, or per micro-batch under ZeRO 3, where each
/// layer travels by itself. Elements are those of a rank of tensor, fold and expert on a stage.
struct Copies {
  Traffic traffic;
  double dense = 0, experts = 0;
};

/// `ends`: elements of embedding and head on the stage, before fold cuts.
Copies copies_of(const StepPlan& plan, const AxisGroups& groups, const StepParts& parts, const StageLayers& cut,
                 int stage, double ends, double element, const TimeRules& rules) {
  const double fold = plan.layout.mesh.size(Axis::Fold);
  const bool by_layer = plan.layout.zero == ZeroStage::Weights;
  Copies copies;
  const auto travel = [&](double dense, double experts, double times) {
    for (const auto& [group, num_ranks, elements] :
         {std::tuple{&groups.all_tokens, groups.num_all_tokens, dense}, {&groups.data, groups.num_data, experts}}) {
      const bool gathers_gradients = plan.layout.zero == ZeroStage::None;
      copies.traffic.add(*group, num_ranks, Collective::ReduceScatter, elements * rules.gradient_bytes, times);
      copies.traffic.add(*group, num_ranks, Collective::AllGather,
                         elements * (gathers_gradients ? rules.gradient_bytes : element), (by_layer ? 2 : 1) * times);
    }
  };
  copies.dense = ends / fold;
  if (by_layer) travel(ends / fold, 0, parts.micro_batches);
  for (std::size_t kind = 0; kind < parts.layers.size(); ++kind) {
    const HeldElements& held = parts.layers[kind].held;
    const double n = cut.at(stage, kind), dense = (held.mixer + held.ffn) / fold, experts = held.experts / fold;
    copies.dense += n * dense;
    copies.experts += n * experts;
    if (by_layer) travel(dense, experts, n * parts.micro_batches);
  }
  if (!by_layer) travel(copies.dense, copies.experts, 1);
  return copies;
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
  const StageLayers all = sizes->kinds.cut(1, 1);
  const auto tokens = static_cast<double>(job.sequence_length);
  for (std::size_t kind = 0; kind < sizes->kinds.kinds().size(); ++kind) {
    const LayerWork& work = sizes->kinds.kinds()[kind];
    const double used_experts = work.num_experts > 0 ? work.experts_per_token / work.num_experts : 0;
    const double ffn_used = work.ffn_elements - work.expert_elements * (1 - used_experts);
    sizes->mixer_matmul += all.at(0, kind) * 2 * work.mixer_elements * tokens;
    sizes->mixer_core += all.at(0, kind) * work.mixer_core;
    sizes->ffn += all.at(0, kind) * 2 * ffn_used * tokens;
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
  return std::make_shared<const StepParts>(step_parts(plan, sizes_->job, groups, sizes_->rules, sizes_->speeds,
                                                      sizes_->hidden, sizes_->vocabulary, sizes_->kinds.kinds()));
}

StepTime TimeModel::step(const StepPlan& plan, const AxisGroups& groups, const StepParts& parts) const {
  const Sizes& sizes = *sizes_;
  const TimeRules& rules = sizes.rules;
  const int stages = plan.layout.mesh.size(Axis::Pipeline), chunks = plan.layout.virtual_stages;
  const StageLayers cut = sizes.kinds.cut(stages, chunks);
  const Border border = border_of(plan, groups, parts, sizes.hidden, sizes.speeds.element, rules);
  const Pipeline pipeline = pipeline_of(parts, cut, stages, border, rules);
  const int slowest = pipeline.slowest;

  StepTime step;
  const double rounds = parts.micro_batches * parts.mean_fill;
  for (std::size_t kind = 0; kind < parts.layers.size(); ++kind) {
    add(step, parts.layers[kind], rounds * cut.at(slowest, kind), rules.collective_share);
  }
  if (slowest == stages - 1) {
    step.head = rounds * parts.head.computing();
    StepTime rest;  // its parts are in `head`; only its communication counts apart
    add(rest, parts.head, rounds, rules.collective_share);
    for (std::size_t i = 0; i < rest.axes.size(); ++i) {
      step.axes[i].bytes += rest.axes[i].bytes;
      step.axes[i].hidden += rest.axes[i].hidden;
      step.axes[i].exposed += rest.axes[i].exposed;
    }
  }
  add(step.axes[static_cast<int>(Axis::Pipeline)], border.traffic, pipeline.border_exposed, rounds,
      rules.collective_share);
  if (stages > 1) {
    const PipelineShape shape{kind_of(plan.layout.pipeline_form), stages, parts.micro_batches, chunks};
    const double busy = parts.micro_batches * pipeline.times[slowest].sum();
    step.bubble = std::max(0.0, pipeline_makespan(shape, pipeline.times) - busy);
  }

  const double rows = sizes.vocabulary * sizes.hidden * parts.share.vocabulary;
  const bool has_end = slowest == 0 || slowest == stages - 1;
  const double ends = stages > 1 ? (has_end ? rows : 0) : sizes.tied ? rows : 2 * rows;
  const Copies copies = copies_of(plan, groups, parts, cut, slowest, ends, sizes.speeds.element, rules);
  const double sent = copies.traffic.seconds / rules.collective_share;
  const double hidden = hidden_part(sent, rounds * pipeline.room, rules.data_exposed);
  add(step.axes[static_cast<int>(Axis::Data)], copies.traffic, sent - hidden, 1, rules.collective_share);

  const bool cuts_optimizer = plan.layout.zero != ZeroStage::None;
  step.optimizer = (copies.dense / (cuts_optimizer ? groups.num_all_tokens : 1) +
                    copies.experts / (cuts_optimizer ? groups.num_data : 1)) *
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
