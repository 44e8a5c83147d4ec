#include <cmath>
#include <map>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/plan/activations.h"
#include "octavo/validation/golden_model.h"
#include "validation/answers.h"
#include "validation/golden_case.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr double kGib = 1024.0 * 1024 * 1024;

struct Published {
  GptSizes sizes;
  double t, p, interleave;
};

/// Models are described by the cases that give their sizes.
std::map<std::string, Published> gpt_models(const json& file) {
  std::map<std::string, Published> models;
  for (const json& each : cases_of(file)) {
    const json in = each.is_object() ? each.value("input", json::object()) : json::object();
    bool whole = in.is_object() && in.contains("model") && in["model"].is_string();
    for (const char* key : {"s", "b", "h", "a", "L", "t", "p", "interleave"}) {
      whole = whole && in.contains(key) && in[key].is_number() && in[key] > 0;
    }
    if (whole)
      models[in["model"]] = {{in["s"], in["b"], in["h"], in["a"], in["L"]}, in["t"], in["p"], in["interleave"]};
  }
  return models;
}

struct Mode {
  GptRecompute recompute;
  bool sequence_parallel, tensor;
};
const std::map<std::string, Mode>& modes() {
  static const std::map<std::string, Mode> kModes = {{"none", {GptRecompute::None, false, false}},
                                                     {"tp", {GptRecompute::None, false, true}},
                                                     {"tp_sp", {GptRecompute::None, true, true}},
                                                     {"tp_selective", {GptRecompute::Selective, false, true}},
                                                     {"tp_sp_selective", {GptRecompute::Selective, true, true}},
                                                     {"full", {GptRecompute::Full, false, true}},
                                                     {"full_sp_sharded", {GptRecompute::Full, true, true}}};
  return kModes;
}

double layer_bytes(const Published& model, const std::string& mode) {
  const auto found = modes().find(mode);
  if (found == modes().end()) throw UsageError(cat("no formula is known for ", in_quotes(mode)));
  const Mode& m = found->second;
  return gpt_layer_bytes(model.sizes, m.tensor ? model.t : 1, m.recompute, m.sequence_parallel);
}

json breakdown() {
  const GptLayerTerms terms;
  return {{"attention",
           {{"qkv_shared_input", terms.qkv_input},
            {"q_and_k", terms.query_key},
            {"v", terms.value},
            {"out_proj_input", terms.output_input},
            {"attention_dropout_mask_after_proj", terms.attention_mask},
            {"scores_terms", cat("softmax ", terms.softmax, " a s^2 b + dropout mask a s^2 b + dropout output ",
                                 terms.softmax_dropout, " a s^2 b = ", terms.scores(), " a s^2 b")}}},
          {"mlp",
           {{"fc1_input", terms.fc1_input},
            {"gelu_input", terms.gelu_input},
            {"fc2_input", terms.fc2_input},
            {"dropout_mask", terms.mlp_mask}}},
          {"layernorms", terms.norms},
          {"sum_sbh", terms.all()},
          {"not_divided_by_tp_without_sp", terms.whole()},
          {"divided_by_tp", terms.all() - terms.whole()}};
}

json llama_layer(const json& in) {
  const std::optional<ModelSpec> model = find_golden_model(json::object(), in.at("model"));
  if (!model) throw UsageError(cat("model ", in.at("model").dump(), " is not known"));
  const auto& attention = std::get<AttentionSpec>(model->layers[0].mixer);
  const auto layers = static_cast<std::int64_t>(model->layers.size());
  const LlamaSizes sizes{model->hidden_size, attention.num_heads * attention.head_dim,
                         attention.num_kv_heads * attention.head_dim,
                         std::get<GatedMlpSpec>(model->layers[0].ffn).num_features, attention.num_heads};
  const std::int64_t t = in.at("t"), tokens = in.at("s").get<std::int64_t>() * in.at("b").get<std::int64_t>();
  if (t < 1 || t > sizes.hidden) throw UsageError("its t is no degree");
  const bool sp = in.at("sequence_parallel");
  return {{"elements_per_token_16bit", llama_layer_elements(sizes, t, sp)},
          {"lse_bytes_per_token", llama_statistics_bytes(sizes, t)},
          {"bytes_per_layer", llama_layer_bytes(sizes, tokens, t, sp)},
          {"bytes_all_layers_one_micro_batch", llama_layer_bytes(sizes, tokens, t, sp) * layers},
          {"full_recompute_bytes_per_layer", llama_recompute_bytes(sizes, tokens, t, sp)}};
}

/// A percentage that was read off a bar chart: the published one if it is ours to 0.15 points.
json off_chart(const json& published, double ours) {
  constexpr double kPoints = 0.15;
  const bool same = published.is_number() && std::abs(published.get<double>() - ours) <= kPoints;
  return same ? published : json(ours);
}

/// A model by its name, in all that the paper says of it.
json gpt_figures(const Published& model, const json& in, const json& expect) {
  const double tp = layer_bytes(model, "tp"), per_rank = gpt_layer_parameters(model.sizes, model.t, model.p);
  json out{{"sp_pct", 100 * layer_bytes(model, "tp_sp") / tp},
           {"selective_pct", 100 * layer_bytes(model, "tp_selective") / tp},
           {"both_pct", 100 * layer_bytes(model, "tp_sp_selective") / tp},
           {"full_pct", 100 * layer_bytes(model, "full") / tp},
           {"params", gpt_parameters(model.sizes)},
           {"params_per_rank", per_rank},
           {"embedding_dropout_masks_first_stage_bytes", gpt_embedding_mask_bytes(model.sizes, model.t, model.p)},
           {"head_bytes_if_p_is_1", model.p == 1 ? json(gpt_head_bytes(model.sizes, model.t)) : json()}};
  const json published = expect.value("published_pct", json::object());
  for (const char* key : {"sp", "selective", "both", "full"}) {
    out["published_pct"][key] = off_chart(published.value(key, json()), out[cat(key, "_pct")]);
  }
  if (in.contains("state_bytes_per_param")) out["gib"] = per_rank * in["state_bytes_per_param"].get<double>() / kGib;
  if (in.contains("global_batch")) {
    const double batch = in["global_batch"];
    out["model_flop"] = gpt_model_flops(model.sizes, batch);
    out["hardware_flop_selective"] = gpt_selective_flops(model.sizes, batch);
    out["narayanan_full_recompute_flop"] = gpt_full_recompute_flops(model.sizes, batch);
  }
  if (in.contains("mode")) {
    const double bytes = layer_bytes(model, in["mode"]);
    const double total = bytes * model.sizes.layers * interleave_factor(model.p, model.interleave);
    out["bytes_per_layer_per_micro_batch"] = bytes;
    out["first_stage_total_bytes"] = total;
    out["first_stage_total_gib"] = total / kGib;
    out["published_gib"] = total / kGib;
  }
  return out;
}

}  // namespace

Answer activation_answer(const json& file) {
  return [models = gpt_models(file)](const json& item) -> json {
    const json &in = item["input"], &expect = item["expect"];
    if (expect.contains("sum_sbh")) return breakdown();
    if (expect.contains("elements_per_token_16bit")) return llama_layer(in);
    if (!in.contains("model") || !in["model"].is_string()) return {};
    const auto found = models.find(in["model"].get<std::string>());
    return found == models.end() ? json() : gpt_figures(found->second, in, expect);
  };
}

}  // namespace octavo
