// The identities of tests/data/golden/activation_memory.json, whatever cases the file has. What a schedule has in
// flight
// ("inflight") is tested with the schedules.
#include "octavo/plan/activations.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"

using namespace octavo;
using nlohmann::json;

namespace {

json golden() {
  return parse_json(read_text_file("tests/data/golden/activation_memory.json", "[test]"), "[test]");
}

std::string without_dashes(std::string name) {
  std::erase(name, '-');
  return name;
}

/// The config whose file has this name, dashes aside.
LlamaSizes llama_of(const std::string& name, std::int64_t& layers) {
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/configs")) {
    if (without_dashes(entry.path().stem().string()) != without_dashes(name)) continue;
    const ModelSpec model = read_model_spec(entry.path());
    const auto& attention = std::get<AttentionSpec>(model.layers[0].mixer);
    layers = static_cast<std::int64_t>(model.layers.size());
    return {model.hidden_size, attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.head_dim,
            std::get<GatedMlpSpec>(model.layers[0].ffn).num_features, attention.num_heads};
  }
  FAIL("no config for ", name);
  return {};
}

struct Published {
  GptSizes sizes;
  double t, p, interleave;
};

/// Models are described by the cases that give their sizes.
std::map<std::string, Published> gpt_models(const json& file) {
  std::map<std::string, Published> models;
  for (const json& each : file["cases"]) {
    const json& in = each["input"];
    if (!in.contains("h")) continue;
    models[in["model"]] = {{in["s"], in["b"], in["h"], in["a"], in["L"]}, in["t"], in["p"], in["interleave"]};
  }
  return models;
}

struct Mode {
  GptRecompute recompute;
  bool sequence_parallel, tensor;
};
const std::map<std::string, Mode> kModes = {{"none", {GptRecompute::None, false, false}},
                                            {"tp", {GptRecompute::None, false, true}},
                                            {"tp_sp", {GptRecompute::None, true, true}},
                                            {"tp_selective", {GptRecompute::Selective, false, true}},
                                            {"tp_sp_selective", {GptRecompute::Selective, true, true}},
                                            {"full", {GptRecompute::Full, false, true}},
                                            {"full_sp_sharded", {GptRecompute::Full, true, true}}};

double layer_bytes(const Published& model, const std::string& mode) {
  const Mode& m = kModes.at(mode);
  return gpt_layer_bytes(model.sizes, m.tensor ? model.t : 1, m.recompute, m.sequence_parallel);
}

void check_value(const json& expect, const char* key, double value, double tolerance) {
  if (!expect.contains(key) || expect[key].is_null()) return;
  CAPTURE(key);
  CHECK(value == doctest::Approx(expect[key].get<double>()).epsilon(std::max(tolerance, 1e-12)));
}

}  // namespace

TEST_CASE("the published activation formulas give every figure of the golden file") {
  const json file = golden();
  const auto models = gpt_models(file);
  constexpr double kGib = 1024.0 * 1024 * 1024;
  int count = 0;
  for (const json& each : file["cases"]) {
    const std::string id = each["id"];
    const json &in = each["input"], &expect = each["expect"];
    const double tolerance = each["tolerance_rel"];
    CAPTURE(id);
    if (id.starts_with("inflight")) continue;
    ++count;
    if (id.starts_with("llama.")) {
      std::int64_t layers = 0;
      const LlamaSizes sizes = llama_of(in["model"], layers);
      const std::int64_t t = in["t"], tokens = in["s"].get<std::int64_t>() * in["b"].get<std::int64_t>();
      const bool sp = in["sequence_parallel"];
      CHECK(llama_layer_elements(sizes, t, sp) == expect["elements_per_token_16bit"].get<std::int64_t>());
      CHECK(llama_statistics_bytes(sizes, t) == expect["lse_bytes_per_token"].get<std::int64_t>());
      CHECK(llama_layer_bytes(sizes, tokens, t, sp) == expect["bytes_per_layer"].get<std::int64_t>());
      CHECK(llama_layer_bytes(sizes, tokens, t, sp) * layers ==
            expect["bytes_all_layers_one_micro_batch"].get<std::int64_t>());
      CHECK(llama_recompute_bytes(sizes, tokens, t, sp) ==
            expect["full_recompute_bytes_per_layer"].get<std::int64_t>());
      continue;
    }
    if (id == "korth.breakdown") {
      const GptLayerTerms terms;
      CHECK(terms.qkv_input == expect["attention"]["qkv_shared_input"].get<double>());
      CHECK(terms.query_key == expect["attention"]["q_and_k"].get<double>());
      CHECK(terms.value == expect["attention"]["v"].get<double>());
      CHECK(terms.output_input == expect["attention"]["out_proj_input"].get<double>());
      CHECK(terms.attention_mask == expect["attention"]["attention_dropout_mask_after_proj"].get<double>());
      CHECK(terms.scores() == 5);
      CHECK(terms.fc1_input == expect["mlp"]["fc1_input"].get<double>());
      CHECK(terms.gelu_input == expect["mlp"]["gelu_input"].get<double>());
      CHECK(terms.fc2_input == expect["mlp"]["fc2_input"].get<double>());
      CHECK(terms.mlp_mask == expect["mlp"]["dropout_mask"].get<double>());
      CHECK(terms.norms == expect["layernorms"].get<double>());
      CHECK(terms.all() == expect["sum_sbh"].get<double>());
      CHECK(terms.whole() == expect["not_divided_by_tp_without_sp"].get<double>());
      CHECK(terms.all() - terms.whole() == expect["divided_by_tp"].get<double>());
      continue;
    }
    REQUIRE(models.contains(in["model"].get<std::string>()));
    const Published& model = models.at(in["model"].get<std::string>());
    const std::string kind = id.substr(0, id.rfind('.'));
    if (kind == "korth.rel") {
      const double tp = layer_bytes(model, "tp");
      check_value(expect, "sp_pct", 100 * layer_bytes(model, "tp_sp") / tp, tolerance);
      check_value(expect, "selective_pct", 100 * layer_bytes(model, "tp_selective") / tp, tolerance);
      check_value(expect, "both_pct", 100 * layer_bytes(model, "tp_sp_selective") / tp, tolerance);
      check_value(expect, "full_pct", 100 * layer_bytes(model, "full") / tp, tolerance);
    } else if (kind == "korth.params") {
      check_value(expect, "params", gpt_parameters(model.sizes), tolerance);
    } else if (kind == "korth.flop") {
      const double batch = in["global_batch"];
      check_value(expect, "model_flop", gpt_model_flops(model.sizes, batch), tolerance);
      check_value(expect, "hardware_flop_selective", gpt_selective_flops(model.sizes, batch), tolerance);
      check_value(expect, "narayanan_full_recompute_flop", gpt_full_recompute_flops(model.sizes, batch), tolerance);
    } else if (kind == "korth.state") {
      const double per_rank = gpt_layer_parameters(model.sizes, model.t, model.p);
      check_value(expect, "params_per_rank", per_rank, tolerance);
      check_value(expect, "gib", per_rank * in["state_bytes_per_param"].get<double>() / kGib, tolerance);
    } else if (kind == "korth.outside") {
      check_value(expect, "embedding_dropout_masks_first_stage_bytes",
                  gpt_embedding_mask_bytes(model.sizes, model.t, model.p), tolerance);
      check_value(expect, "head_bytes_if_p_is_1", gpt_head_bytes(model.sizes, model.t), tolerance);
    } else {
      REQUIRE(in.contains("mode"));
      REQUIRE(kModes.contains(in["mode"].get<std::string>()));
      const double bytes = layer_bytes(model, in["mode"]), factor = interleave_factor(model.p, model.interleave);
      check_value(in, "interleave_factor", factor, 1e-9);
      check_value(expect, "bytes_per_layer_per_micro_batch", bytes, tolerance);
      const double total = bytes * model.sizes.layers * factor;
      check_value(expect, "first_stage_total_bytes", total, tolerance);
      check_value(expect, "first_stage_total_gib", total / kGib, tolerance);
      check_value(expect, "published_gib", total / kGib, tolerance);
    }
  }
  MESSAGE(count << " cases");
  CHECK(count > 0);
}
