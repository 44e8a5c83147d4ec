#include <algorithm>
#include <numeric>

#include "cli/core/audit_report.h"
#include "cli/core/table.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

template <class Number>
std::string list_text(const std::vector<Number>& numbers, const std::string& none = "none") {
  std::vector<std::string> texts;
  for (const Number& number : numbers) texts.push_back(cat(number));
  return texts.empty() ? none : join(texts, ", ");
}

std::string range_text(const Interval& range) {
  if (range.empty()) return "none";
  return range.size() == 1 ? cat(range.begin) : cat(range.begin, " to ", range.end - 1);
}

std::string size_text(double bytes) {
  return format_bytes(static_cast<Bytes>(bytes));
}

/// "2 x (10+3), 1 x (9+4)": stages in a row that have the same layers; DeltaNet + attention in a hybrid.
std::string composition_text(const std::vector<StageComposition>& stages) {
  const auto is_hybrid =
      std::any_of(stages.begin(), stages.end(), [](const StageComposition& stage) { return stage.recurrent > 0; });
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < stages.size();) {
    std::size_t end = first;
    while (end < stages.size() && stages[end] == stages[first]) ++end;
    const StageComposition& stage = stages[first];
    runs.push_back(cat(end - first, " x ",
                       is_hybrid ? cat("(", stage.recurrent, "+", stage.attention, ")") : cat(stage.attention)));
    first = end;
  }
  constexpr std::size_t kMostRuns = 4;
  if (runs.size() > kMostRuns) {
    runs.resize(kMostRuns);
    runs.emplace_back("...");
  }
  return join(runs, ", ");
}

std::string_view cut_name(CutBy cut_by) {
  switch (cut_by) {
    case CutBy::Tensor:
      return "tensor";
    case CutBy::Pipeline:
      return "pipeline";
    case CutBy::Experts:
      return "expert x tensor";
    case CutBy::Tokens:
      return "sequence x fold";
    case CutBy::Nothing:
      return "";
  }
  return "";
}

/// What a rank computes of a dimension.
std::string share_text(const DimensionRow& row, const AuditReport& report) {
  const AuditDimension& dimension = row.dimension;
  const Misfit misfit = report.options.layout.misfit;
  if (dimension.cut_by == CutBy::Nothing) return "-";
  const auto find = [&](const char* name) -> const DimensionRow* {
    for (const DimensionRow& other : report.dimensions) {
      if (other.dimension.name == name) return &other;
    }
    return nullptr;
  };
  const auto padded = [](const DimensionRow& cut) { return (cut.dimension.size + cut.degree - 1) / cut.degree; };
  if (const DimensionRow* keys = find("kv_heads");
      dimension.name == "query_heads" && misfit == Misfit::Pad && keys != nullptr && !keys->slice) {
    return cat(padded(*keys) * (dimension.size / keys->dimension.size), ", those of its KV heads");
  }
  if (row.slice) return with_commas(*row.slice);
  if (dimension.cut_by != CutBy::Tensor || misfit == Misfit::Refuse) return "DOES NOT DIVIDE";
  return misfit == Misfit::Pad
             ? cat("DOES NOT DIVIDE: ", padded(row), ", padded")
             : cat("DOES NOT DIVIDE: ", dimension.size / std::gcd(dimension.size, row.degree), ", copied");
}

void add_dimensions(std::string& text, const AuditReport& report) {
  Table table({"dimension", "size", "factors", "degrees that divide it", "cut by", "each rank"});
  for (const DimensionRow& row : report.dimensions) {
    const bool is_cut = row.dimension.cut_by != CutBy::Nothing;
    table.add({cat(row.dimension.name, " (", row.dimension.what, ")"), with_commas(row.dimension.size),
               row.factors.to_string(), list_text(row.fitting),
               is_cut ? cat(cut_name(row.dimension.cut_by), "=", row.degree) : "-", share_text(row, report)});
  }
  text += table.to_string();
}

void add_degrees(std::string& text, const AuditReport& report) {
  text += cat("\ntensor degrees that fit every dimension: ", list_text(report.tensor_degrees.exact),
              "; with copies of KV heads: ", list_text(report.tensor_degrees.with_kv_replication), "\n");
  if (report.next_degree && !report.next_failing.empty()) {
    text += cat("largest that fits: ", report.tensor_degrees.exact.back(), "; ", *report.next_degree, " is stopped by ",
                join(report.next_failing, ", "), "\n");
  }
  text += cat("sequence degrees by heads (ulysses): ", list_text(report.ulysses_degrees),
              "; by tokens (gather, ring): any\nfold: any degree; it has no divisor\n");
}

void add_policies(std::string& text, const AuditReport& report) {
  if (report.policies.empty()) return;
  const Layout& layout = report.options.layout;
  const int tensor = layout.mesh.size(Axis::Tensor);
  text += cat("\ntensor=", tensor, " does not divide ", join(report.fit.failing, ", "), ". What can be done",
              layout.mesh.size(Axis::Pipeline) > 1 ? " (prices of all layers; a stage pays for its own)" : "", ":\n");
  text += "  refuse     an error; the default\n";
  for (const MisfitPolicy& policy : report.policies) {
    const char* name = policy.misfit == Misfit::Replicate ? "replicate" : "pad";
    Layout treated = layout;
    treated.misfit = policy.misfit;
    for (std::size_t i = 0; i < policy.prices.size(); ++i) {
      const MisfitBytes& bytes = policy.bytes[i];
      text += cat("  ", name, std::string(11 - std::string(name).size(), ' '),
                  misfit_text(policy.prices[i], treated, report.options.compute), "\n             all ", tensor,
                  " ranks: +", size_text(bytes.weights * tensor), " weights, +", size_text(bytes.gradients * tensor),
                  " gradients, +", size_text(bytes.optimizer * tensor), " optimizer");
      if (bytes.kv_cache > 0) {
        text += cat(", +", size_text(bytes.kv_cache * tensor * static_cast<double>(report.options.sequence_length)),
                    " KV cache at ", report.options.sequence_length, " tokens");
      }
      text += "\n";
    }
  }
  if (report.gather) {
    text += cat("  gather     no copies of weights: q, k and v are gathered instead, ",
                size_text(static_cast<double>(report.gather->forward)), " received per rank forward and ",
                size_text(static_cast<double>(report.gather->backward)), " backward, at ",
                report.options.sequence_length, " tokens (octavo does not do this; Megatron-core does)\n");
  }
  if (report.lower_degree) {
    text += cat("  tensor=", *report.lower_degree,
                std::string(4 - std::min<std::size_t>(3, cat(*report.lower_degree).size()), ' '), "fits, and stores ",
                with_commas(report.lower_elements), " parameters per rank\n");
  }
  if (report.fold) {
    text += cat("  fold       \"", report.fold->layout.to_string(), "\" has no divisor: no copies, no zeros; ",
                with_commas(report.fold->elements), " parameters per rank, ",
                size_text(static_cast<double>(report.fold->sent)), " sent per rank and trained sequence of ",
                report.options.sequence_length, " tokens\n");
  }
}

void add_pipeline(std::string& text, const AuditReport& report, bool is_hybrid) {
  if (report.pipeline.empty()) return;
  text +=
      cat("\npipeline: cost of a stage is forward FLOPs at ", report.options.sequence_length,
          " tokens; slowest over mean, with the head on the last stage unless \"body\"; idle: share of the step at ",
          report.options.micro_batches, " micro-batches, with equal stages and with these");
  if (is_hybrid) text += "; layers are (DeltaNet+attention)";
  text += "\n";
  Table table({"stages", "layers, cut evenly", "body", "with head", "super-blocks", "best cut", "1f1b idle",
               cat("interleaved-", std::max(2, report.options.layout.virtual_stages), " idle"), "zb-h1 idle"});
  for (const PipelineRow& row : report.pipeline) {
    const auto ratio = [](const StageBalance& found) { return fixed(found.max_over_mean, 3); };
    const auto idle = [&](PipelineKind kind) -> std::string {
      for (const PipelineRow::Idle& bubble : row.bubbles) {
        if (bubble.kind != kind) continue;
        return cat(fixed(100 * bubble.equal.of_total, 1), "%, ", fixed(100 * bubble.unequal_of_total, 1), "%");
      }
      return "-";
    };
    table.add({cat(row.degree, row.identical ? " (alike)" : ""), composition_text(row.stages), ratio(row.body),
               ratio(row.with_head), row.super_blocks ? ratio(*row.super_blocks) : "-",
               row.optimal ? ratio(*row.optimal) : "-", idle(PipelineKind::OneForwardOneBackward),
               idle(PipelineKind::Interleaved), idle(PipelineKind::ZeroBubbleH1)});
  }
  text += table.to_string();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return cat("[", list_text(shape), "]");
}

void add_rank(std::string& text, const AuditReport& report) {
  if (!report.rank) {
    text += cat("\nno rank is shown: ", report.no_rank, "\n");
    return;
  }
  const RankReport& rank = *report.rank;
  text +=
      cat("\nrank ", rank.rank, " of ", report.options.layout.world_size(), ": layers ", range_text(rank.layers), "\n");
  for (const RankReport::Group& group : rank.groups) {
    std::vector<int> shown(group.ranks.begin(),
                           group.ranks.begin() + std::min<std::ptrdiff_t>(16, std::ssize(group.ranks)));
    text += cat("  ", group.axis, " index ", group.index, " of ", group.ranks.size(), "; with ranks ", list_text(shown),
                shown.size() < group.ranks.size() ? ", ..." : "", "\n");
  }
  if (report.options.layout.mesh.size(Axis::Expert) > 1) {
    text += "  what follows is as if expert were 1: that axis is not laid out yet\n";
  }
  for (const RankReport::Heads& heads : rank.heads) {
    text += cat("  ", kind_name(heads.kind), ": ", unit_name(heads.kind), " ", range_text(heads.range.units));
    if (heads.kind != BlockKind::Moe) text += cat(", ", part_name(heads.kind), " ", range_text(heads.range.parts));
    text += "\n";
  }
  text += cat("  ", with_commas(rank.elements), " parameters: ", format_bytes(rank.state.weights), " weights, ",
              format_bytes(rank.state.gradients), " gradients, ", format_bytes(rank.state.optimizer), " optimizer; ",
              format_bytes(rank.cache_per_token), " KV cache per token, ",
              format_bytes(rank.cache_per_token * report.options.sequence_length), " at ",
              report.options.sequence_length, " tokens");
  if (rank.recurrent_per_sequence > 0) {
    text += cat("; ", format_bytes(rank.recurrent_per_sequence), " recurrent state per sequence");
  }
  text += "\n";
  Table table({"parameter", "shape", "here, as a matrix"});
  for (const RankReport::Slice& slice : rank.slices) {
    table.add({slice.parameter, shape_text(slice.shape), cat("[", slice.slice.rows, ", ", slice.slice.columns, "]")});
  }
  text += table.to_string();
}

}  // namespace

std::string audit_text(const ModelSpec& model, const AuditReport& report) {
  const Layout& layout = report.options.layout;
  const std::string written = layout.to_string();
  const bool is_hybrid = std::any_of(model.layers.begin(), model.layers.end(), [](const LayerSpec& layer) {
    return std::holds_alternative<DeltaNetSpec>(layer.mixer);
  });
  std::string text = cat(model.model_type, ", ", with_commas(report.num_parameters), " parameters");
  if (report.num_active != report.num_parameters)
    text += cat(", ", with_commas(report.num_active), " active per token");
  if (report.num_mtp > 0) text += cat(" (and ", with_commas(report.num_mtp), " for multi-token prediction, left out)");
  text += cat("\nlayout: ", written.empty() ? "one rank" : written, ", ", layout.world_size(),
              layout.world_size() == 1 ? " rank" : " ranks", "; ", element_type_name(report.options.compute), "\n\n");
  add_dimensions(text, report);
  add_degrees(text, report);
  add_policies(text, report);
  add_pipeline(text, report, is_hybrid);
  add_rank(text, report);
  text += "\n";
  for (const std::string& problem : report.problems) text += cat("not even: ", problem, "\n");
  if (report.problems.empty()) text += "the layout cuts everything evenly: no copies, no padding, no unequal stages\n";
  return text;
}

}  // namespace octavo::cli
