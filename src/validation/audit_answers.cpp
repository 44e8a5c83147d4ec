#include "validation/audit_answers.h"

#include <algorithm>

#include "octavo/plan/audit_pipeline.h"
#include "octavo/plan/audit_policies.h"
#include "octavo/plan/audit_slices.h"
#include "octavo/plan/pipeline_schedule.h"
#include "octavo/spec/decode_state.h"
#include "octavo/spec/flops.h"
#include "octavo/spec/parameters.h"

namespace octavo {
namespace {

json divisors(const Audit& audit, const json& input, const json&) {
  const std::int64_t size = find_dimension(audit_dimensions(audit.model), input["dim"]).size;
  require(size == input["size"]);
  return {{"divisors_upto_64", divisors_up_to(size, 64)},
          {"power_of_two_divisors", power_of_two_divisors(size, 2048)}};  // as far as the files list them
}

json factors(const Audit& audit, const json& input, const json&) {
  const std::int64_t size = find_dimension(audit_dimensions(audit.model), input["dim"]).size;
  const Factorisation factorisation = factorise(size);
  return {{"size", size},
          {"power_of_two_part", factorisation.power_of_two()},
          {"odd_part", factorisation.odd_part()},
          {"max_pow2_degree", factorisation.power_of_two()}};
}

json tensor_status(const Audit& audit, const json& input, const json&) {
  const TensorFit fit = tensor_fit(audit.model, count(input, "tp"));
  return {
      {"status", status_name(fit.status)}, {"failing_dims", fit.failing}, {"kv_replication_factor", fit.kv_replicas}};
}

json tensor_degrees(const Audit& audit, const json& input, const json&) {
  const FittingDegrees degrees = fitting_degrees(audit.model, count(input, "upto"));
  return {{"exact", degrees.exact}, {"with_kv_replication", degrees.with_kv_replication}};
}

json tensor_shapes(const Audit& audit, const json& input, const json& expect) {
  const std::int64_t degree = count(input, "tp");
  const bool exact = input["kv_policy"] == "exact";
  const Layout layout = audit.tensor(degree, exact ? "refuse" : "replicate");
  const Placement placement = place(audit.table, layout, 0);
  const auto out_in = [&](const char* name) {
    const ParameterSlice slice = slice_of(audit.table, placement, audit.parameter(name));
    return std::vector<std::int64_t>{slice.rows, slice.columns};
  };
  const auto in_out = [&](const char* name) {
    const std::vector<std::int64_t> shape = out_in(name);
    return std::vector<std::int64_t>{shape[1], shape[0]};
  };
  const auto elements = [&](const char* name) {
    return slice_of(audit.table, placement, audit.parameter(name)).elements();
  };
  const auto vector_of = [&](const char* name) { return std::vector<std::int64_t>{elements(name)}; };
  const json shapes = {
      {"embed_tokens [rows,hidden]", out_in("embed_tokens.weight")},
      {"lm_head [in,out]", in_out(audit.model.tied_embeddings ? "embed_tokens.weight" : "lm_head.weight")},
      {"q_proj(query+gate) [in,out]", in_out("q_proj.weight")},
      {"k_proj [in,out]", in_out("k_proj.weight")},
      {"v_proj [in,out]", in_out("v_proj.weight")},
      {"o_proj [in,out]", in_out("o_proj.weight")},
      {"gate_proj [in,out]", in_out("gate_proj.weight")},
      {"up_proj [in,out]", in_out("up_proj.weight")},
      {"down_proj [in,out]", in_out("down_proj.weight")},
      {"gdn.in_proj_qkv [in,out]", in_out("in_proj_qkv.weight")},
      {"gdn.in_proj_z [in,out]", in_out("in_proj_z.weight")},
      {"gdn.in_proj_b [in,out]", in_out("in_proj_b.weight")},
      {"gdn.in_proj_a [in,out]", in_out("in_proj_a.weight")},
      {"gdn.conv1d [channels,width]", out_in("conv1d.weight")},
      {"gdn.out_proj [in,out]", in_out("out_proj.weight")},
      {"gdn.A_log", vector_of("A_log")},
      {"gdn.dt_bias", vector_of("dt_bias")},
      {"replicated norms",
       {{"input/post/final norm", elements("input_layernorm.weight")},
        {"q_norm,k_norm", elements("q_norm.weight")},
        {"gdn.norm", elements("linear_attn.norm.weight")}}}};
  const BlockLayout& attention = audit.block(BlockKind::Attention);
  const BlockLayout& delta_net = audit.block(BlockKind::DeltaNet);
  const auto closed = [](const Interval& range) { return json{range.begin, range.end - 1}; };
  json query_heads, kv_heads;
  for (const auto& rank : expect["q_heads_of_rank"].items()) {
    const HeadRange heads = heads_of(attention, share_of(attention, layout, std::stoi(rank.key())));
    query_heads[rank.key()] = closed(heads.parts);
    kv_heads[rank.key()] = exact ? closed(heads.units) : json(heads.units.begin);
    if (!exact) require(heads.units.size() == 1);
  }
  const HeadRange here = heads_of(attention, share_of(attention, layout, 0));
  const HeadRange recurrent = heads_of(delta_net, share_of(delta_net, layout, 0));
  return {{"shapes", shapes},
          {"query_heads_per_rank", here.parts.size()},
          {"kv_heads_per_rank", here.units.size()},
          {"gdn_qk_heads_per_rank", recurrent.units.size()},
          {"gdn_v_heads_per_rank", recurrent.parts.size()},
          {"q_heads_of_rank", query_heads},
          {"kv_head_of_rank", kv_heads}};
}

json parameter_counts(const Audit& audit, const json&, const json&) {
  const ModelSpec& model = audit.model;
  const std::int64_t hidden = model.hidden_size, vocabulary = model.vocab_size * hidden;
  const auto layer_elements = [&](const LayerSpec& layer) {
    return mixer_parameters(model, layer) + ffn_parameters(model, layer);
  };
  // A mixer or MLP without the norm in front of it.
  return {{"total", num_parameters(model)},
          {"attention_layer", layer_elements(audit.attention_layer())},
          {"gdn_layer", layer_elements(audit.recurrent_layer())},
          {"embedding", vocabulary},
          {"lm_head", model.tied_embeddings ? 0 : vocabulary},
          {"final_norm", hidden},
          {"attention_mixer", mixer_parameters(model, audit.attention_layer()) - hidden},
          {"gdn_mixer", mixer_parameters(model, audit.recurrent_layer()) - hidden},
          {"mlp", ffn_parameters(model, audit.attention_layer()) - hidden}};
}

json mtp_count(const Audit& audit, const json&, const json&) {
  return {{"mtp_extra", num_mtp_parameters(audit.model)}};
}

json rank_parameters(const Audit& audit, const json& input, const json&) {
  require(input["zero"] == 0);
  const std::int64_t degree = count(input, "tp"), stages = count(input, "pp");
  const Layout layout = parse_layout(
      cat("pipeline=", stages, " tensor=", degree, ":", input["kv_policy"] == "exact" ? "refuse" : "replicate"));
  std::int64_t most = 0, sum = 0;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const std::int64_t elements = stored_elements(audit.table, layout, rank, audit.model);
    most = std::max(most, elements);
    sum += elements;
  }
  return {{"params_per_rank", most},
          {"state_bytes_per_rank", most * count(input, "state_bytes_per_param")},
          {"sum_over_ranks_minus_model", sum - num_parameters(audit.model)}};
}

/// Weights of K and V: of one layer whole, and as the first rank of a group stores them under replicate.
struct KvWeights {
  KvWeights(const Audit& audit, std::int64_t degree) {
    const Placement placement = place(audit.table, audit.tensor(degree), 0);
    for (const char* name : {"k_proj.weight", "v_proj.weight"}) {
      const Parameter& parameter = audit.parameter(name);
      whole += parameter.elements();
      here += slice_of(audit.table, placement, parameter).elements();
    }
    extra = here - whole / degree;
  }
  std::int64_t whole = 0, here = 0, extra = 0;
};

json kv_copies(const Audit& audit, const json& input, const json&) {
  require(input["policy"] == "replicate_kv_weights");
  const std::int64_t degree = count(input, "tp"), layers = count(input, "attention_layers");
  const KvWeights weights(audit, degree);
  const std::int64_t extra = layers * weights.extra, extra_total = extra * degree;
  return {{"kv_weight_elements_whole", layers * weights.whole},
          {"kv_weight_elements_per_rank", layers * weights.here},
          {"ideal_per_rank", layers * weights.whole / degree},
          {"extra_elements_per_rank", extra},
          {"extra_elements_total", extra_total},
          {"extra_weight_bytes_per_rank", 2 * extra},
          {"extra_weight_bytes_total", 2 * extra_total},
          {"extra_grad_bytes_bf16_per_rank", 2 * extra},
          {"extra_grad_bytes_fp32_per_rank", 4 * extra},
          {"extra_optimizer_bytes_per_rank", 12 * extra},
          {"extra_state_bytes_per_rank_s16", 16 * extra},
          {"extra_state_bytes_per_rank_s18", 18 * extra},
          {"extra_state_bytes_total_s16", 16 * extra_total},
          {"extra_state_bytes_total_s18", 18 * extra_total}};
}

json kv_copy_flops(const Audit& audit, const json& input, const json&) {
  const std::int64_t degree = count(input, "tp");
  const std::int64_t each = 2 * audit.num_attention() * KvWeights(audit, degree).extra, total = each * degree;
  return {{"extra_forward_flop_per_token_per_rank", each},
          {"extra_forward_flop_per_token_total", total},
          {"share_of_linear_forward_flop",
           static_cast<double>(total) / static_cast<double>(2 * matmul_parameters(audit.model))}};
}

json kv_cache(const Audit& audit, const json& input, const json&) {
  const std::int64_t degree = count(input, "tp");
  const std::int64_t tokens = count(input, "context") * count(input, "sequences");
  const Bytes element = count(input, "bytes_per_element");
  const Bytes per_token = cache_elements(audit.table, audit.tensor(degree), 0, audit.model) * element;
  const Bytes here = per_token * tokens, whole = kv_cache_bytes_per_token(audit.model, element) * tokens;
  return {{"bytes_per_rank", here},
          {"bytes_total", here * degree},
          {"bytes_per_token_per_rank", per_token},
          {"replicated_bytes_per_rank", here},
          {"replicated_bytes_total", here * degree},
          {"ideal_bytes_per_rank", whole / degree},
          {"ideal_bytes_total", whole},
          {"extra_bytes_per_rank", here - whole / degree},
          {"extra_bytes_total", here * degree - whole}};
}

json decode_state(const Audit& audit, const json& input, const json&) {
  const std::int64_t sequences = count(input, "sequences");
  return {{"recurrent_state_bytes_per_layer", sequences * recurrent_state_bytes(audit.delta_net())},
          {"recurrent_state_bytes_model", sequences * recurrent_state_bytes(audit.model)},
          {"conv_state_bytes_per_layer_bf16", sequences * conv_state_bytes(audit.delta_net(), 2)},
          {"kv_cache_layers", audit.num_attention()},
          {"independent_of_context", true}};
}

json gather(const Audit& audit, const json& input, const json&) {
  require(input["policy"] == "gather_qkv_activations");
  const GatherPrice price =
      gather_price(audit.model, count(input, "tp"), count(input, "tokens"), count(input, "bytes_per_element"));
  return {{"full_tensor_elements_per_layer", price.full_elements},
          {"received_elements_per_rank_per_layer_fwd", price.received_elements},
          {"received_bytes_per_rank_model_fwd", price.forward},
          {"backward_reduce_scatter_bytes_per_rank_model", price.backward}};
}

json compare_policies(const Audit& audit, const json& input, const json& expect) {
  const std::int64_t world = count(input, "tp_world");
  const Bytes state = count(input, "state_bytes_per_param");
  const std::int64_t replicated = stored_elements(audit.table, audit.tensor(world), 0, audit.model);
  const std::int64_t extra = audit.num_attention() * KvWeights(audit, world).extra;
  json result = {{"replicate_params_per_rank", replicated}, {"replicate_extra_bytes_per_rank", extra * state}};
  result[cat("tp", world, "_ideal_params_per_rank_without_kv_copy")] = replicated - extra;
  for (const auto& item : expect.items()) {  // "tp4_params_per_rank"
    const std::string& key = item.key();
    if (!key.starts_with("tp") || !key.ends_with("_params_per_rank")) continue;
    const std::string degree = key.substr(2, key.find('_') - 2);
    const std::int64_t elements = stored_elements(audit.table, audit.tensor(std::stoi(degree)), 0, audit.model);
    result[key] = elements;
    result["tp" + degree + "_instead_extra_bytes_per_rank"] = (elements - replicated) * state;
  }
  return result;
}

json padded_heads(const Audit& audit, const json& input, const json&) {
  const std::int64_t heads = audit.attention().num_heads, degree = count(input, "tp");
  const Padding padded = padding(heads, degree);
  return {{"query_heads_per_rank_exact", heads % degree == 0},
          {"smallest_padded_query_heads", padded.padded},
          {"padding_waste_fraction", padded.waste}};
}

}  // namespace

std::string status_name(TensorFit::Status status) {
  switch (status) {
    case TensorFit::Status::Exact:
      return "exact";
    case TensorFit::Status::KvReplication:
      return "kv_replication_possible";
    case TensorFit::Status::Misfit:
      return "refuse_or_special";
  }
  return "";
}

std::map<std::string, AuditAnswer> audit_size_answers() {
  return {{"divisors_upto_64", divisors},
          {"power_of_two_part", factors},
          {"failing_dims", tensor_status},
          {"with_kv_replication", tensor_degrees},
          {"shapes", tensor_shapes},
          {"attention_mixer", parameter_counts},
          {"mtp_extra", mtp_count},
          {"params_per_rank", rank_parameters},
          {"kv_weight_elements_whole", kv_copies},
          {"share_of_linear_forward_flop", kv_copy_flops},
          {"bytes_per_token_per_rank", kv_cache},
          {"ideal_bytes_per_rank", kv_cache},
          {"recurrent_state_bytes_per_layer", decode_state},
          {"received_bytes_per_rank_model_fwd", gather},
          {"replicate_params_per_rank", compare_policies},
          {"smallest_padded_query_heads", padded_heads}};
}

}  // namespace octavo
