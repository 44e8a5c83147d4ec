#include <nlohmann/json.hpp>

#include "cli/core/audit_report.h"
#include "octavo/base/text.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

std::string_view status_name(TensorFit::Status status) {
  switch (status) {
    case TensorFit::Status::Exact:
      return "exact";
    case TensorFit::Status::KvReplication:
      return "kv_replication_possible";
    case TensorFit::Status::Misfit:
      return "misfit";
  }
  return "";
}

json to_json(const DimensionRow& row) {
  json powers = json::array();
  for (const Factorisation::Power& power : row.factors.powers) powers.push_back({power.prime, power.exponent});
  json out = {{"name", row.dimension.name}, {"size", row.dimension.size}, {"factors", powers},
              {"degrees", row.fitting},     {"degree", row.degree},       {"slice", nullptr},
              {"what", row.dimension.what}};
  if (row.slice) out["slice"] = *row.slice;
  return out;
}

json to_json(const MisfitPolicy& policy, int tensor) {
  json kinds = json::array();
  for (std::size_t i = 0; i < policy.prices.size(); ++i) {
    const MisfitPrice& price = policy.prices[i];
    const MisfitBytes& bytes = policy.bytes[i];
    const auto amounts = [&](double times) {
      return json{{"weights_bytes", bytes.weights * times},
                  {"gradients_bytes", bytes.gradients * times},
                  {"optimizer_bytes", bytes.optimizer * times},
                  {"sent_bytes_per_step", bytes.wire * times},
                  {"kv_cache_bytes_per_token", bytes.kv_cache * times},
                  {"recurrent_state_bytes_per_sequence", bytes.recurrent * times},
                  {"forward_flops_per_token", bytes.matmul * times}};
    };
    kinds.push_back({{"kind", kind_name(price.kind)},
                     {"units", price.num_units},
                     {"blocks", price.num_blocks},
                     {"extra_elements", price.extra_elements},
                     {"extra_heads", price.extra_heads},
                     {"per_rank", amounts(1)},
                     {"total", amounts(tensor)}});
  }
  return {{"policy", policy.misfit == Misfit::Replicate ? "replicate" : "pad"},
          {"extra_elements", policy.extra_elements},
          {"kinds", kinds}};
}

json to_json(const StageBalance& balance) {
  return {{"max_over_min", balance.max_over_min},
          {"max_over_mean", balance.max_over_mean},
          {"slowest_stage", balance.slowest}};
}

json to_json(const PipelineRow& row) {
  json out = {{"stages", row.degree},
              {"identical", row.identical},
              {"body", to_json(row.body)},
              {"with_head", to_json(row.with_head)},
              {"super_blocks_with_head", nullptr},
              {"optimal_with_head", nullptr},
              {"bubbles", json::array()},
              {"layers", json::array()}};
  if (row.super_blocks) out["super_blocks_with_head"] = to_json(*row.super_blocks);
  if (row.optimal) out["optimal_with_head"] = to_json(*row.optimal);
  for (const StageComposition& stage : row.stages) {
    out["layers"].push_back(
        {{"delta_net", stage.recurrent}, {"attention", stage.attention}, {"with_experts", stage.with_experts}});
  }
  for (const PipelineRow::Idle& idle : row.bubbles) {
    out["bubbles"].push_back({{"schedule", pipeline_kind_name(idle.kind)},
                              {"over_ideal", idle.equal.over_ideal},
                              {"of_total", idle.equal.of_total},
                              {"of_total_unequal_stages", idle.unequal_of_total}});
  }
  return out;
}

json to_json(const RankReport& rank) {
  json out = {{"rank", rank.rank},
              {"layers", {rank.layers.begin, rank.layers.end}},
              {"parameters", rank.elements},
              {"weights_bytes", rank.state.weights},
              {"gradients_bytes", rank.state.gradients},
              {"optimizer_bytes", rank.state.optimizer},
              {"kv_cache_bytes_per_token", rank.cache_per_token},
              {"recurrent_state_bytes_per_sequence", rank.recurrent_per_sequence},
              {"axes", json::object()},
              {"heads", json::array()},
              {"slices", json::array()}};
  for (const RankReport::Group& group : rank.groups) {
    out["axes"][group.axis] = {{"index", group.index}, {"ranks", group.ranks}};
  }
  for (const RankReport::Heads& heads : rank.heads) {
    out["heads"].push_back({{"kind", kind_name(heads.kind)},
                            {"units", {heads.range.units.begin, heads.range.units.end}},
                            {"parts", {heads.range.parts.begin, heads.range.parts.end}}});
  }
  for (const RankReport::Slice& slice : rank.slices) {
    out["slices"].push_back(
        {{"parameter", slice.parameter}, {"shape", slice.shape}, {"here", {slice.slice.rows, slice.slice.columns}}});
  }
  return out;
}

}  // namespace

json audit_json(const ModelSpec& model, const AuditReport& report) {
  const AuditOptions& options = report.options;
  json out = {{"model_type", model.model_type},
              {"parameters", report.num_parameters},
              {"active_parameters", report.num_active},
              {"mtp_parameters", report.num_mtp},
              {"layout", options.layout.to_string()},
              {"world_size", options.layout.world_size()},
              {"sequence_length", options.sequence_length},
              {"dtype", element_type_name(options.compute)},
              {"micro_batches", options.micro_batches},
              {"degrees", options.degrees},
              {"dimensions", json::array()},
              {"tensor",
               {{"status", status_name(report.fit.status)},
                {"failing", report.fit.failing},
                {"kv_replicas", report.fit.kv_replicas},
                {"exact", report.tensor_degrees.exact},
                {"with_kv_replication", report.tensor_degrees.with_kv_replication},
                {"next_failing", report.next_failing}}},
              {"ulysses", report.ulysses_degrees},
              {"policies", json::array()},
              {"pipeline", json::array()},
              {"rank", nullptr},
              {"problems", report.problems}};
  for (const DimensionRow& row : report.dimensions) out["dimensions"].push_back(to_json(row));
  for (const MisfitPolicy& policy : report.policies) {
    out["policies"].push_back(to_json(policy, options.layout.mesh.size(Axis::Tensor)));
  }
  if (report.gather) {
    out["gather"] = {{"received_bytes_forward", report.gather->forward},
                     {"received_bytes_backward", report.gather->backward}};
  }
  if (report.fold) {
    out["fold"] = {{"layout", report.fold->layout.to_string()},
                   {"parameters_per_rank", report.fold->elements},
                   {"sent_bytes_per_sequence", report.fold->sent}};
  }
  if (report.lower_degree) {
    out["lower_degree"] = {{"tensor", *report.lower_degree}, {"parameters_per_rank", report.lower_elements}};
  }
  for (const PipelineRow& row : report.pipeline) out["pipeline"].push_back(to_json(row));
  if (report.rank) out["rank"] = to_json(*report.rank);
  return out;
}

}  // namespace octavo::cli
