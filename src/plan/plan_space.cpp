#include "plan/plan_space.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/spec/parameters.h"

namespace octavo {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> found;
  for (int divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) found.push_back(divisor);
  }
  return found;
}

const StashPolicy& named(const char* text) {
  static const std::map<std::string, StashPolicy> kPolicies = {
      {"attention,qkv,gate_up", parse_stash_policy("attention,qkv,gate_up")},
      {"attention,qkv", parse_stash_policy("attention,qkv")},
      {"attention", parse_stash_policy("attention")}};
  return kPolicies.at(text);
}

}  // namespace

int Degrees::*Degrees::member(Axis axis) {
  switch (axis) {
    case Axis::Pipeline:
      return &Degrees::pipeline;
    case Axis::Data:
      return &Degrees::data;
    case Axis::Expert:
      return &Degrees::expert;
    case Axis::Sequence:
      return &Degrees::sequence;
    case Axis::Fold:
      return &Degrees::fold;
    case Axis::Tensor:
      return &Degrees::tensor;
  }
  throw InternalError("[plan] unknown axis");
}

Degrees degrees_of(const DeviceMesh& mesh) {
  Degrees degrees;
  for (const AxisSize& entry : mesh.axes()) degrees.of(entry.axis) = entry.size;
  return degrees;
}

DeviceMesh mesh_of(const Degrees& degrees, Axis innermost) {
  std::vector<AxisSize> sizes;
  for (const Axis axis : kAllAxes) {
    if (axis != innermost && degrees.of(axis) > 1) sizes.push_back({axis, degrees.of(axis)});
  }
  if (degrees.of(innermost) > 1) sizes.push_back({innermost, degrees.of(innermost)});
  return DeviceMesh(std::move(sizes));
}

PlanSpace::PlanSpace(const PlanRequest& request, const SearchSpace& space)
    : request_(request),
      space_(space),
      num_layers_(static_cast<int>(request.model.layers.size())),
      num_experts_(num_experts(request.model)) {}

std::vector<Degrees> PlanSpace::degrees() const {
  const int world = request_.cluster.world_size();
  const std::vector<int> all = divisors(world);
  const auto allowed = [&](Axis axis) {
    const bool means = axis != Axis::Expert || num_experts_ > 0;
    return means && space_.allows(axis) ? all : std::vector<int>{1};
  };
  // Each axis takes what those before it left; data takes the rest.
  constexpr std::array kOrder = {Axis::Pipeline, Axis::Expert, Axis::Sequence, Axis::Fold, Axis::Tensor};
  std::array<std::vector<int>, kOrder.size()> degrees;
  for (std::size_t i = 0; i < kOrder.size(); ++i) degrees[i] = allowed(kOrder[i]);
  std::vector<Degrees> found;
  Degrees next;
  const auto extend = [&](const auto& self, std::size_t place, int left) -> void {
    if (place == kOrder.size()) {
      next.data = left;
      if (left == 1 || space_.allows(Axis::Data)) found.push_back(next);
      return;
    }
    for (const int degree : degrees[place]) {
      if (left % degree != 0) continue;
      next.of(kOrder[place]) = degree;
      self(self, place + 1, left / degree);
    }
  };
  extend(extend, 0, world);
  return found;
}

std::optional<Broken> PlanSpace::broken(const Degrees& degrees) const {
  if (degrees.pipeline > num_layers_) {
    return Broken{Rule::Layers, cat("pipeline=", degrees.pipeline, " over ", num_layers_, " layers")};
  }
  // Both axes cut experts whole; under expert=1 tensor may replicate or pad them.
  if (degrees.expert > 1 && num_experts_ % (std::int64_t{1} * degrees.expert * degrees.tensor) != 0) {
    return Broken{Rule::Experts,
                  cat("expert=", degrees.expert, " x tensor=", degrees.tensor, " over ", num_experts_, " experts")};
  }
  const std::int64_t readers = std::int64_t{1} * degrees.data * degrees.expert;
  if (request_.job.batch % readers != 0) {
    return Broken{Rule::Batch,
                  cat("a batch of ", request_.job.batch, request_.job.batch == 1 ? " sequence" : " sequences", " over ",
                      readers, " ranks of data and expert: the batch must be a multiple of them")};
  }
  const std::int64_t cuts = std::int64_t{1} * degrees.sequence * degrees.fold;
  if (cuts > 1 && request_.job.sequence_length < 2 * cuts) {
    return Broken{Rule::Tokens, cat(request_.job.sequence_length, " tokens over 2 x ", cuts, " chunks")};
  }
  return std::nullopt;
}

std::optional<Broken> PlanSpace::broken(const StepPlan& plan) const {
  const Layout& layout = plan.layout;
  const Degrees degrees = degrees_of(layout.mesh);
  if (degrees.expert > 1 && num_experts_ == 0) {
    return Broken{Rule::Experts, cat("expert=", degrees.expert, " of a model without experts")};
  }
  if (auto found = broken(degrees)) return found;
  for (const TensorOption& option : tensor(degrees)) {
    if (option.form == layout.tensor_form && option.misfit == layout.misfit && option.broken) return option.broken;
  }
  for (const SequenceOption& option : sequence(degrees)) {
    if (option.form == layout.sequence_form && option.broken) return option.broken;
  }
  const std::int64_t share = request_.job.batch / (std::int64_t{1} * degrees.data * degrees.expert);
  if (plan.micro_batch < 1 || plan.micro_batch > share) {
    return Broken{Rule::Batch, cat("a micro-batch of ", plan.micro_batch, " of a rank's ", share, " sequences")};
  }
  return broken(degrees, {layout.pipeline_form, layout.virtual_stages}, plan.micro_batch);
}

std::vector<ZeroStage> PlanSpace::zero(const Degrees& degrees) const {
  if (degrees.copies() == 1) return {ZeroStage::None};
  std::vector<ZeroStage> stages = {ZeroStage::Optimizer, ZeroStage::Weights, ZeroStage::None};
  std::erase_if(stages, [&](ZeroStage stage) { return !space_.allows(stage); });
  return stages;
}

std::vector<PipelineOption> PlanSpace::pipeline(const Degrees& degrees) const {
  constexpr int kMostParts = 8;
  if (degrees.pipeline == 1) return {{PipelineForm::OneForwardOneBackward, 1}};
  std::vector<PipelineOption> options = {
      {PipelineForm::OneForwardOneBackward, 1}, {PipelineForm::AllForward, 1}, {PipelineForm::ZeroBubble, 1}};
  for (int parts = 2; parts <= kMostParts; ++parts) {
    if (num_layers_ % (degrees.pipeline * parts) == 0) options.push_back({PipelineForm::Interleaved, parts});
  }
  std::erase_if(options, [&](const PipelineOption& option) { return !space_.allows(option.form); });
  return options;
}

std::vector<TensorOption> PlanSpace::tensor(const Degrees& degrees) const {
  if (degrees.tensor == 1) return {{TensorForm::AllReduce, Misfit::Refuse, std::nullopt}};
  const TensorFit& fit = tensor_fit_of(degrees.tensor);
  std::vector<TensorOption> options;
  for (const TensorForm form : {TensorForm::AllReduce, TensorForm::Scatter}) {
    if (fit.failing.empty()) {
      options.push_back({form, Misfit::Refuse, std::nullopt});
      continue;
    }
    options.push_back(
        {form, Misfit::Refuse,
         Broken{Rule::Units, cat("tensor=", degrees.tensor, " does not divide ", join(fit.failing, ", "))}});
    options.push_back({form, Misfit::Replicate, std::nullopt});
  }
  return options;
}

std::vector<SequenceOption> PlanSpace::sequence(const Degrees& degrees) const {
  if (degrees.sequence == 1) return {{SequenceForm::Auto, std::nullopt}};
  std::vector<SequenceOption> options = {{SequenceForm::Gather, std::nullopt}, {SequenceForm::Ring, std::nullopt}};
  const int ranks = degrees.sequence * degrees.tensor;
  const TensorFit& fit = ulysses_fit_of(ranks);
  if (fit.failing.empty()) {
    options.push_back({SequenceForm::Ulysses, std::nullopt});
  } else {
    options.push_back({SequenceForm::Ulysses,
                       Broken{Rule::Heads, cat("ulysses with sequence=", degrees.sequence, " tensor=", degrees.tensor,
                                               " does not divide ", join(fit.failing, ", "))}});
  }
  return options;
}

std::vector<FoldForm> PlanSpace::fold(const Degrees& degrees) const {
  if (degrees.fold == 1) return {FoldForm::Auto};
  return {FoldForm::Auto, FoldForm::Weights, FoldForm::Activations};
}

std::vector<std::int64_t> PlanSpace::micro_batches(const Degrees& degrees) const {
  const std::int64_t here = request_.job.batch / (std::int64_t{1} * degrees.data * degrees.expert);
  if (space_.micro_batch) {
    return *space_.micro_batch <= here ? std::vector{*space_.micro_batch} : std::vector<std::int64_t>{};
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= here; ++size) {
    if (here % size == 0) sizes.push_back(size);
    if (size * size > here) break;
  }
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (here / sizes[i] > sizes.back()) sizes.push_back(here / sizes[i]);
  }
  return sizes;
}

std::vector<StashPolicy> PlanSpace::stashes() const {
  if (space_.stash) return {*space_.stash};
  return {StashPolicy{}, named("attention,qkv,gate_up"), named("attention,qkv"), named("attention"),
          StashPolicy{StashPolicy::Kind::Recompute, {}}};
}

std::vector<DeviceMesh> PlanSpace::orders(const Degrees& degrees) const {
  std::vector<DeviceMesh> orders = {mesh_of(degrees, Axis::Tensor)};
  if (request_.cluster.num_nodes == 1) return orders;
  // Axes inside a node have its links, whichever is innermost.
  const int inner = degrees.expert * degrees.sequence * degrees.fold * degrees.tensor;
  const bool fits_node = request_.cluster.gpus_per_node % inner == 0;
  for (const Axis axis : {Axis::Fold, Axis::Sequence, Axis::Expert, Axis::Data, Axis::Pipeline}) {
    const int degree = degrees.of(axis);
    const int behind = axis == Axis::Fold       ? degrees.tensor
                       : axis == Axis::Sequence ? degrees.tensor * degrees.fold
                       : axis == Axis::Expert   ? degrees.tensor * degrees.fold * degrees.sequence
                       : axis == Axis::Data     ? inner
                                                : inner * degrees.data;
    const bool moves = degree > 1 && behind > 1;
    const bool is_inside = axis != Axis::Data && axis != Axis::Pipeline && fits_node;
    if (moves && !is_inside) orders.push_back(mesh_of(degrees, axis));
  }
  return orders;
}

std::optional<Broken> PlanSpace::broken(const Degrees& degrees, const PipelineOption& option,
                                        std::int64_t micro_batch) const {
  if (option.form != PipelineForm::Interleaved) return std::nullopt;
  const std::int64_t here = request_.job.batch / (std::int64_t{1} * degrees.data * degrees.expert);
  const int rounds = static_cast<int>((here + micro_batch - 1) / micro_batch);
  const auto problem = shape_problem({PipelineKind::Interleaved, degrees.pipeline, rounds, option.virtual_stages});
  if (!problem) return std::nullopt;
  return Broken{Rule::Schedule, *problem};
}

const TensorFit& PlanSpace::tensor_fit_of(int degree) const {
  const auto [found, is_new] = tensor_fits_.try_emplace(degree);
  if (is_new) found->second = tensor_fit(request_.model, degree);
  return found->second;
}

const TensorFit& PlanSpace::ulysses_fit_of(int degree) const {
  const auto [found, is_new] = ulysses_fits_.try_emplace(degree);
  if (is_new) found->second = ulysses_fit(request_.model, degree);
  return found->second;
}

}  // namespace octavo
