#include <algorithm>

#include "octavo/plan/audit_pipeline.h"
#include "octavo/plan/audit_policies.h"
#include "octavo/plan/audit_slices.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/spec/decode_state.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"
#include "validation/audit_answers.h"

namespace octavo {
namespace {

json layer_costs(const Audit& audit, const json& input, const json&) {
  require(input["pass_"] == "forward");
  const std::int64_t tokens = count(input, "tokens"), sequences = count(input, "sequences");
  const auto pairs = CausalPairs::HalfSquare;
  const auto times = static_cast<double>(sequences);
  const Flops attention = times * layer_flops(audit.model, audit.attention_layer(), tokens, pairs);
  const Flops recurrent = times * layer_flops(audit.model, audit.recurrent_layer(), tokens, pairs);
  const std::vector<std::int64_t> lengths(sequences, tokens);
  const auto whole = [](Flops flops) { return static_cast<std::int64_t>(flops); };
  return {{"gdn_layer", whole(recurrent)},
          {"attention_layer", whole(attention)},
          {"attention_core", whole(times * attention_core_flops(audit.attention_layer(), tokens, pairs))},
          {"lm_head", whole(times * head_flops(audit.model, tokens))},
          {"ratio_attention_to_gdn", attention / recurrent},
          {"model_forward", whole(forward_flops(audit.model, lengths, pairs))}};
}

json stage_costs(const Audit& audit, const json& input, const json& expect) {
  const bool by_layers = input["partition"] == "layers_even";
  if (!by_layers) require(input["partition"] == "superblocks_even");
  const auto stages =
      even_stages(audit.model, static_cast<int>(count(input, "pp")), by_layers ? 1 : super_block_size(audit.model));
  const std::vector<StageComposition> layers = compositions(audit.model, stages);
  json result;
  for (const StageComposition& stage : layers) {
    result["stage_composition_gdn_attn"].push_back({stage.recurrent, stage.attention});
  }
  result["identical"] =
      std::all_of(layers.begin(), layers.end(), [&](const auto& stage) { return stage == layers.front(); });
  for (const auto& item : expect.items()) {
    if (item.key().front() != 'T') continue;
    const std::int64_t tokens = std::stoll(item.key().substr(1));
    for (const bool with_head : {false, true}) {
      const StageBalance found = balance(stage_flops(audit.model, stages, tokens, with_head));
      const std::string what = with_head ? "with_head" : "body";
      result[item.key()]["max_over_min_" + what] = found.max_over_min;
      result[item.key()]["max_over_mean_" + what] = found.max_over_mean;
      result[item.key()]["slowest_stage_" + what] = found.slowest;
    }
  }
  return result;
}

json best_cut(const Audit& audit, const json& input, const json&) {
  json result;
  for (const bool with_head : {false, true}) {
    const auto stages = optimal_stages(audit.model, count(input, "pp"), count(input, "tokens"), with_head);
    const StageBalance found = balance(stage_flops(audit.model, stages, count(input, "tokens"), with_head));
    result[with_head ? "max_over_mean_with_head" : "max_over_mean_body"] = found.max_over_mean;
  }
  return result;
}

json identical_stages(const Audit& audit, const json& input, const json& expect) {
  const auto num_layers = static_cast<std::int64_t>(audit.model.layers.size());
  require(input["layers"] == num_layers);
  require(input["super_blocks"] == num_layers / super_block_size(audit.model));
  json result = {{"degrees", identical_degrees(audit.model, num_layers)}};
  for (const auto& item : expect.items()) {  // "pp4_layers_per_stage"
    if (!item.key().starts_with("pp")) continue;
    const int degree = std::stoi(item.key().substr(2));
    const auto stages = even_stages(audit.model, degree, 1);
    const StageComposition first = compositions(audit.model, stages).front();
    const std::string prefix = cat("pp", degree, "_");
    result[prefix + "layers_per_stage"] = stages.front().size();
    result[prefix + "gdn"] = first.recurrent;
    result[prefix + "attention"] = first.attention;
    result[prefix + "super_blocks"] = stages.front().size() / super_block_size(audit.model);
  }
  return result;
}

json head_shares(const Audit& audit, const json&, const json& expect) {
  json result;
  std::int64_t body = 0;
  for (const LayerSpec& layer : audit.model.layers) {
    body += mixer_parameters(audit.model, layer) + ffn_parameters(audit.model, layer);
  }
  const std::int64_t head = audit.model.vocab_size * audit.model.hidden_size;
  for (const auto& item : expect.items()) {
    const std::int64_t stage = body / std::stoi(item.key().substr(2));
    result[item.key()] = {{"params_of_body_stage", stage},
                          {"head_params", head},
                          {"head_over_stage", static_cast<double>(head) / static_cast<double>(stage)}};
  }
  return result;
}

json bubble(const Audit&, const json& input, const json&) {
  const PipelineShape shape{PipelineKind::OneForwardOneBackward, static_cast<int>(count(input, "pp")),
                            static_cast<int>(count(input, "micro_batches"))};
  const PipelineBubble found = pipeline_bubble(shape, {.forward = 1, .backward_input = 1, .backward_weight = 1});
  return {{"over_ideal", found.over_ideal}, {"of_total", found.of_total}};
}

json ulysses(const Audit& audit, const json& input, const json&) {
  const TensorFit fit = ulysses_fit(audit.model, count(input, "sp"));
  const auto is_fine = [&](const char* name) {
    return std::find(fit.failing.begin(), fit.failing.end(), name) == fit.failing.end();
  };
  return {{"query_heads_ok", is_fine("query_heads")},
          {"kv_heads_ok", is_fine("kv_heads")},
          {"gdn_qk_heads_ok", is_fine("gdn_qk_heads")},
          {"status", status_name(fit.status)},
          {"layers_needing_token_exchange", audit.num_attention()},
          {"layers_needing_state_exchange", audit.num_recurrent()}};
}

json segment_state(const Audit& audit, const json&, const json&) {
  const DeltaNetSpec& spec = audit.delta_net();
  const Bytes state = recurrent_state_bytes(spec);
  return {{"affine_summary_bytes_per_segment_per_layer", affine_summary_bytes(spec)},
          {"state_only_bytes_per_layer", state},
          {"conv_halo_bytes_per_layer_bf16", conv_state_bytes(spec, 2)},
          {"depends_on_tokens", false}};
}

json coordinates(const Audit&, const json& input, const json&) {
  const std::map<std::string, Axis> axes = {{"tp", Axis::Tensor}, {"sp", Axis::Sequence}, {"cp", Axis::Sequence},
                                            {"dp", Axis::Data},   {"pp", Axis::Pipeline}, {"ep", Axis::Expert},
                                            {"fold", Axis::Fold}};
  std::vector<AxisSize> sizes;
  for (const json& name : input["order_fastest_first"]) {
    sizes.insert(sizes.begin(), {axes.at(name), input["sizes"][name.get<std::string>()].get<int>()});
  }
  const DeviceMesh mesh(sizes);
  require(mesh.world_size() == input["world"]);
  json result;
  for (const json& name : input["order_fastest_first"]) {
    result["coordinates"][name.get<std::string>()] = mesh.index(input["rank"], axes.at(name));
  }
  return result;
}

}  // namespace

std::map<std::string, AuditAnswer> audit_stage_answers() {
  return {{"ratio_attention_to_gdn", layer_costs},
          {"stage_composition_gdn_attn", stage_costs},
          {"max_over_mean_body", best_cut},
          {"degrees", identical_stages},
          {"pp2", head_shares},
          {"over_ideal", bubble},
          {"layers_needing_token_exchange", ulysses},
          {"affine_summary_bytes_per_segment_per_layer", segment_state},
          {"coordinates", coordinates}};
}

}  // namespace octavo
