#include "cli/core/audit_report.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/fold_units.h"
#include "octavo/layout/token_spans.h"
#include "octavo/spec/parameters.h"

namespace octavo::cli {
namespace {

std::int64_t degree_of(const AuditDimension& dimension, const Layout& layout) {
  switch (dimension.cut_by) {
    case CutBy::Tensor:
      return layout.mesh.size(Axis::Tensor);
    case CutBy::Pipeline:
      return layout.mesh.size(Axis::Pipeline);
    case CutBy::Experts:
      return std::int64_t{layout.mesh.size(Axis::Expert)} * layout.mesh.size(Axis::Tensor);
    case CutBy::Tokens:
      return std::int64_t{layout.mesh.size(Axis::Sequence)} * layout.mesh.size(Axis::Fold);
    case CutBy::Nothing:
      return 1;
  }
  return 1;
}

DimensionRow dimension_row(const AuditDimension& dimension, const AuditOptions& options) {
  DimensionRow row{.dimension = dimension,
                   .factors = factorise(dimension.size),
                   .fitting = {},
                   .degree = degree_of(dimension, options.layout),
                   .slice = {}};
  for (const std::int64_t degree : options.degrees) {
    if (dimension.size % degree == 0) row.fitting.push_back(degree);
  }
  if (dimension.size % row.degree == 0) row.slice = dimension.size / row.degree;
  return row;
}

PipelineRow pipeline_row(const ModelSpec& model, int degree, const AuditOptions& options) {
  constexpr double kMostSteps = 1e8;  // of the search for the best cut
  const std::int64_t tokens = options.sequence_length;
  const std::vector<Interval> stages = even_stages(model, degree, 1);
  const std::vector<Flops> costs = stage_flops(model, stages, tokens, true);
  PipelineRow row{.degree = degree,
                  .stages = compositions(model, stages),
                  .identical = true,
                  .body = balance(stage_flops(model, stages, tokens, false)),
                  .with_head = balance(costs),
                  .super_blocks = {},
                  .optimal = {},
                  .bubbles = {}};
  for (const StageComposition& stage : row.stages) row.identical = row.identical && stage == row.stages.front();
  const std::int64_t unit = super_block_size(model);
  const auto num_layers = static_cast<double>(model.layers.size());
  if (degree <= static_cast<std::int64_t>(model.layers.size()) / unit) {
    row.super_blocks = balance(stage_flops(model, even_stages(model, degree, unit), tokens, true));
  }
  if (num_layers * num_layers * degree <= kMostSteps) {
    row.optimal = balance(stage_flops(model, optimal_stages(model, degree, tokens, true), tokens, true));
  }
  std::vector<StageTimes> times;  // a backward pass costs two forward passes
  for (const Flops cost : costs) {
    times.push_back({.forward = cost, .backward_input = cost, .backward_weight = cost});
  }
  double work = 0;
  for (const StageTimes& stage : times) work += stage.sum() * options.micro_batches / degree;
  std::vector<PipelineShape> shapes = {
      {.kind = PipelineKind::GPipe, .num_stages = degree, .num_micro_batches = options.micro_batches},
      {.kind = PipelineKind::OneForwardOneBackward, .num_stages = degree, .num_micro_batches = options.micro_batches},
      {.kind = PipelineKind::Interleaved,
       .num_stages = degree,
       .num_micro_batches = options.micro_batches,
       .num_chunks = std::max(2, options.layout.virtual_stages)},
      {.kind = PipelineKind::ZeroBubbleH1, .num_stages = degree, .num_micro_batches = options.micro_batches}};
  for (const PipelineShape& shape : shapes) {
    if (shape_problem(shape) || degree * shape.num_chunks > num_layers) continue;
    const double makespan = pipeline_makespan(shape, times);
    row.bubbles.push_back({shape.kind,
                           pipeline_bubble(shape, {.forward = 1, .backward_input = 1, .backward_weight = 1}),
                           (makespan - work) / makespan});
  }
  return row;
}

RankReport rank_report(const ModelSpec& model, const ParamTable& table, const AuditOptions& options, int rank) {
  const Layout& layout = options.layout;
  const DeviceMesh& mesh = layout.mesh;
  const Interval blocks = blocks_of_stage(model, table, layout, mesh.index(rank, Axis::Pipeline));
  const Placement placement = place(table, layout, rank);
  RankReport report{.rank = rank,
                    .groups = {},
                    .layers = even_stages(model, mesh.size(Axis::Pipeline), 1)[mesh.index(rank, Axis::Pipeline)],
                    .heads = {},
                    .slices = {},
                    .elements = stored_elements(table, layout, rank, model),
                    .state = {},
                    .cache_per_token = cache_elements(table, layout, rank, model) * element_bytes(options.compute),
                    .recurrent_per_sequence =
                        recurrent_elements(table, layout, rank, model) * element_bytes(sum_type(options.compute))};
  report.state = audit_state(report.elements, layout, options.compute);
  for (const AxisSize& axis : mesh.axes()) {
    const Axis axes[] = {axis.axis};
    report.groups.push_back({std::string(axis_name(axis.axis)), mesh.index(rank, axis.axis), mesh.group(rank, axes)});
  }
  std::vector<BlockKind> seen;
  for (std::int64_t b = blocks.begin; b < blocks.end; ++b) {
    const BlockLayout& block = table.blocks()[b];
    if (std::find(seen.begin(), seen.end(), block.kind) != seen.end()) continue;
    seen.push_back(block.kind);
    const BlockShare& share = placement.shares[b];
    if (block.kind == BlockKind::Attention || block.kind == BlockKind::DeltaNet || block.kind == BlockKind::Moe) {
      report.heads.push_back({block.kind, heads_of(block, share)});
    }
    const auto first_expert = share.units.begin;
    for (const Parameter& parameter : table.parameters()) {
      const Slab& slab = table.slabs()[parameter.slab];
      // A tied embedding is the head's too, where it was not listed before.
      const bool is_tied = block.kind == BlockKind::Head && blocks.begin > 0 &&
                           parameter.slab == table.panel_slab(static_cast<int>(b), vocabulary_panels::kRows);
      if (slab.block != b && !is_tied) continue;
      // Of experts with tensors of their own, the first that is here.
      const ParameterPiece& piece = parameter.pieces.front();
      if (piece.num_units == 1 && block.num_units > 1 && !slab.is_common && piece.first_unit != first_expert) continue;
      report.slices.push_back({parameter.name, parameter.shape, slice_of(table, placement, parameter)});
    }
  }
  return report;
}

void add_problems(const ModelSpec& model, const ParamTable& table, AuditReport& report) {
  const AuditOptions& options = report.options;
  const Layout& layout = options.layout;
  const int tensor = layout.mesh.size(Axis::Tensor), stages = layout.mesh.size(Axis::Pipeline);
  for (const MisfitPolicy& policy : report.policies) {
    if (layout.misfit != Misfit::Refuse && policy.misfit != layout.misfit) continue;
    if (layout.misfit == Misfit::Refuse && policy.misfit != Misfit::Replicate) continue;  // either names the kinds
    Layout treated = layout;
    treated.misfit = policy.misfit;
    for (const MisfitPrice& price : policy.prices) {
      report.problems.push_back(layout.misfit == Misfit::Refuse
                                    ? cat(kind_name(price.kind), ": ", price.num_units, " ", unit_name(price.kind),
                                          " over tensor=", tensor, " do not divide, and the layout refuses that")
                                    : misfit_text(price, treated, options.compute));
    }
  }
  if (stages > static_cast<int>(model.layers.size())) {
    report.problems.push_back(cat("pipeline=", stages, ": the model has ", model.layers.size(), " layers"));
  } else if (stages > 1) {
    const PipelineRow row = pipeline_row(model, stages, options);
    if (!row.identical) {
      report.problems.push_back(cat("pipeline=", stages, ": stages of different layers; the slowest takes ",
                                    fixed(row.body.max_over_mean, 3), " times the mean at ", options.sequence_length,
                                    " tokens, ", fixed(row.with_head.max_over_mean, 3), " with the head"));
    }
  }
  const int sequence = layout.mesh.size(Axis::Sequence), expert = layout.mesh.size(Axis::Expert);
  if (layout.sequence_form == SequenceForm::Ulysses && sequence > 1) {
    for (const std::string& name : ulysses_fit(model, sequence).failing) {
      report.problems.push_back(cat("sequence=", sequence, ":ulysses: ", name, " = ",
                                    find_dimension(audit_dimensions(model), name).size, " do not divide"));
    }
  }
  for (const auto& [axis, order] :
       {std::pair{Axis::Sequence, layout.sequence_order}, {Axis::Fold, layout.fold_order}}) {
    const TokenCut cut{order, layout.mesh.size(axis)};
    const std::int64_t padded = cut.padded_length(options.sequence_length);
    if (padded == options.sequence_length) continue;
    report.problems.push_back(cat(axis_name(axis), "=", cut.num_ranks, ": sequences of ", options.sequence_length,
                                  " tokens are filled up to ", padded));
  }
  if (expert > 1) {
    const std::int64_t experts = num_experts(model);
    if (experts == 0) {
      report.problems.push_back(cat("expert=", expert, ": the model has no experts"));
    } else if (experts % (std::int64_t{expert} * tensor) != 0) {
      report.problems.push_back(cat("expert=", expert, " tensor=", tensor, ": ", experts, " experts do not divide"));
    }
  }
  if (layout.fold_form == FoldForm::Activations && report.no_rank.empty()) {
    for (const FoldExcess& excess : fold_excesses(table, layout)) {
      report.problems.push_back(fold_excess_text(excess, layout, options.compute));
    }
  }
}

}  // namespace

AuditReport make_audit_report(const ModelSpec& model, const AuditOptions& options) {
  const Layout& layout = options.layout;
  const std::int64_t tensor = layout.mesh.size(Axis::Tensor);
  const ParamTable table(model);
  AuditReport report{};
  report.options = options;
  report.num_parameters = octavo::num_parameters(model);
  report.num_active = num_active_parameters(model);
  report.num_mtp = num_mtp_parameters(model);
  constexpr double kMost = 4e17;  // elements over all ranks: bytes stay below 2^63
  if (static_cast<double>(report.num_parameters) * static_cast<double>(tensor) > kMost) {
    throw UsageError(cat("[cli] tensor=", tensor, " of a model of ", with_commas(report.num_parameters),
                         " parameters is too large to be counted; use a smaller degree"));
  }
  for (const AuditDimension& dimension : audit_dimensions(model)) {
    report.dimensions.push_back(dimension_row(dimension, options));
  }
  const AuditDimension tokens{"tokens", options.sequence_length, CutBy::Tokens, "tokens of a sequence"};
  report.dimensions.push_back(dimension_row(tokens, options));
  report.fit = tensor_fit(model, tensor);
  for (const std::int64_t degree : options.degrees) {
    const TensorFit fit = tensor_fit(model, degree);
    if (fit.status == TensorFit::Status::Exact) report.tensor_degrees.exact.push_back(degree);
    if (fit.status != TensorFit::Status::Misfit) report.tensor_degrees.with_kv_replication.push_back(degree);
    if (ulysses_fit(model, degree).failing.empty()) report.ulysses_degrees.push_back(degree);
    if (fit.status == TensorFit::Status::Exact && degree < tensor) report.lower_degree = degree;
    if (degree >= 2 && degree <= static_cast<std::int64_t>(model.layers.size())) {
      report.pipeline.push_back(pipeline_row(model, static_cast<int>(degree), options));
    }
  }
  if (!report.tensor_degrees.exact.empty()) {
    std::int64_t next = 1;
    while (next <= report.tensor_degrees.exact.back()) next *= 2;
    report.next_degree = next;
    report.next_failing = tensor_fit(model, next).failing;
  }
  report.policies = misfit_policies(table, layout, options.compute);
  if (report.policies.empty()) {
    report.lower_degree.reset();
  } else {
    report.fold = fold_instead(model, table, layout, options.sequence_length, options.compute);
    const auto& failing = report.fit.failing;
    if (std::find(failing.begin(), failing.end(), "kv_heads") != failing.end()) {
      report.gather = gather_price(model, tensor, options.sequence_length, element_bytes(options.compute));
    }
    if (report.lower_degree) {
      report.lower_elements =
          stored_elements(table, with_degree(layout, Axis::Tensor, static_cast<int>(*report.lower_degree)), 0, model);
    }
  }
  const bool refuses = layout.misfit == Misfit::Refuse && !report.policies.empty();
  if (refuses) {
    report.no_rank = "the layout refuses what does not divide: say tensor=" + cat(tensor) + ":replicate or :pad";
  } else if (layout.mesh.size(Axis::Pipeline) > static_cast<int>(model.layers.size())) {
    report.no_rank = "there are more pipeline stages than layers";
  } else {
    report.rank = rank_report(model, table, options, options.rank.value_or(0));
  }
  add_problems(model, table, report);
  return report;
}

}  // namespace octavo::cli
