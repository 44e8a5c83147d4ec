// The families beyond dense transformers: what their configs mean, and what is refused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"
#include "octavo/spec/parameters.h"
#include "spec/read_config.h"

using namespace octavo;
using nlohmann::json;

namespace {

json mixtral() {
  return {
      {"model_type", "mixtral"},    {"hidden_size", 8},         {"intermediate_size", 12}, {"vocab_size", 16},
      {"num_attention_heads", 8},   {"num_key_value_heads", 2}, {"num_hidden_layers", 4},  {"num_local_experts", 4},
      {"num_experts_per_tok", 2},   {"rope_theta", 1e6},        {"head_dim", 4},           {"sliding_window", nullptr},
      {"router_aux_loss_coef", 0.5}};
}

json qwen3_moe() {
  json config = mixtral();
  for (const char* key : {"num_local_experts", "intermediate_size"}) config.erase(key);
  config.update({{"model_type", "qwen3_moe"}, {"num_experts", 4}, {"moe_intermediate_size", 6}});
  return config;
}

json qwen3_5_text() {
  return {{"model_type", "qwen3_5_text"}, {"hidden_size", 8},
          {"intermediate_size", 12},      {"vocab_size", 16},
          {"num_attention_heads", 4},     {"num_key_value_heads", 2},
          {"num_hidden_layers", 8},       {"head_dim", 16},
          {"linear_num_key_heads", 2},    {"linear_num_value_heads", 6},
          {"linear_key_head_dim", 4},     {"linear_value_head_dim", 8},
          {"linear_conv_kernel_dim", 4},  {"rope_parameters", {{"rope_theta", 1e7}, {"mrope_section", {1, 1, 0}}}},
          {"mtp_num_hidden_layers", 1}};
}

json qwen3_next() {
  json config = qwen3_5_text();
  config["rope_parameters"].erase("mrope_section");
  for (const char* key : {"mtp_num_hidden_layers", "intermediate_size"}) config.erase(key);
  config.update({{"model_type", "qwen3_next"},
                 {"num_experts", 8},
                 {"num_experts_per_tok", 3},
                 {"moe_intermediate_size", 6},
                 {"shared_expert_intermediate_size", 10}});
  return config;
}

json wrapped(const json& text) {
  const std::string type = text["model_type"];
  return {{"model_type", type.substr(0, type.size() - 5)}, {"text_config", text}, {"vision_config", {{"depth", 2}}}};
}

bool attends(const LayerSpec& layer) {
  return std::holds_alternative<AttentionSpec>(layer.mixer);
}

std::vector<std::int64_t> shape_of(const ModelSpec& model, const std::string& name) {
  for (const ParameterSpec& parameter : parameters(model)) {
    if (parameter.name == name) return parameter.shape;
  }
  return {};
}

}  // namespace

TEST_CASE("every fourth layer of a hybrid attends where nothing else is said") {
  const ModelSpec model = read(qwen3_5_text());
  REQUIRE(model.layers.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(attends(model.layers[i]) == (i % 4 == 3));
  const auto& attention = std::get<AttentionSpec>(model.layers[3].mixer);
  CHECK(attention.output_gate);
  CHECK(attention.qk_norm);
  CHECK(attention.rope.width == 4);  // a quarter of 16
  CHECK(attention.rope.theta == 1e7);
  const auto& delta_net = std::get<DeltaNetSpec>(model.layers[0].mixer);
  CHECK(delta_net.conv_channels() == 2 * 2 * 4 + 6 * 8);
  CHECK(delta_net.value_width() == 48);
  CHECK(model.zero_centred_norms);
  CHECK(model.num_mtp_layers == 1);
}

TEST_CASE("layer_types say which layers attend, and an interval must agree with them") {
  const json linear = "linear_attention", full = "full_attention";
  const json types = {full, linear, linear, linear, linear, linear, linear, full};
  const ModelSpec model = read(with(qwen3_5_text(), {{"layer_types", types}}));
  CHECK(attends(model.layers[0]));
  CHECK_FALSE(attends(model.layers[3]));
  check_refused(with(qwen3_5_text(), {{"layer_types", types}, {"full_attention_interval", 4}}),
                {"layer_types[0]", "full_attention_interval = 4"});
  const ModelSpec every_second = read(with(qwen3_5_text(), {{"full_attention_interval", 2}}));
  CHECK(attends(every_second.layers[1]));
  check_refused(with(qwen3_5_text(), {{"full_attention_interval", 0}}), {"full_attention_interval", "0"});
  check_refused(with(qwen3_5_text(), {{"layer_types", "full_attention"}}), {"layer_types"});
}

TEST_CASE("the text model behind a vision tower has its own keys and its own names") {
  const ModelSpec model = read(wrapped(qwen3_5_text()));
  CHECK(model.model_type == "qwen3_5");
  CHECK(parameters(model).front().name == "model.language_model.embed_tokens.weight");
  CHECK(parameters(model).back().name == "lm_head.weight");
  CHECK(num_parameters(model) == num_parameters(read(qwen3_5_text())));
  CHECK(read(with(wrapped(qwen3_5_text()), {{"tie_word_embeddings", true}})).tied_embeddings);
  CHECK(read(wrapped(with(qwen3_5_text(), {{"tie_word_embeddings", true}}))).tied_embeddings);
  check_refused(with(wrapped(qwen3_5_text()), {{"text_config", qwen3_next()}}),
                {"text_config: model_type", "qwen3_next", "qwen3_5_text"});
  check_refused(with(wrapped(qwen3_5_text()), {{"text_confg", 1}}), {"text_confg", "text_config"});
  check_refused(wrapped(with(qwen3_5_text(), {{"hiden_size", 1}})), {"text_config: unknown key", "hidden_size"});
}

TEST_CASE("the heads of DeltaNet, its state and its gate are checked") {
  check_refused(with(qwen3_5_text(), {{"linear_num_value_heads", 5}}), {"linear_num_value_heads", "5", "2"});
  check_refused(with(qwen3_5_text(), {{"mamba_ssm_dtype", "bfloat16"}}), {"mamba_ssm_dtype", "bfloat16"});
  check_refused(with(qwen3_5_text(), {{"output_gate_type", "tanh"}}), {"output_gate_type", "tanh"});
  check_refused(with(qwen3_5_text(), {{"attn_output_gate", false}}), {"attn_output_gate", "false"});
  check_refused(with(qwen3_5_text(), {{"mtp_num_hidden_layers", -1}}), {"mtp_num_hidden_layers", "-1"});
  check_refused(with(qwen3_5_text(), {{"mlp_only_layers", {0}}}), {"mlp_only_layers"});
  for (const char* key : {"linear_num_key_heads", "linear_key_head_dim", "linear_conv_kernel_dim"}) {
    check_refused(with(qwen3_5_text(), {{key, 0}}), {key});
  }
  const std::int64_t large = std::int64_t{1} << 40;
  check_refused(with(qwen3_5_text(), {{"linear_key_head_dim", large}, {"linear_value_head_dim", large}}),
                {"linear_key_head_dim"});
}

TEST_CASE("a partial rotary embedding turns an even number of dimensions, in as many sections") {
  const auto rope = [](const json& keys) { return with(qwen3_5_text(), {{"rope_parameters", keys}}); };
  CHECK(std::get<AttentionSpec>(read(rope({{"partial_rotary_factor", 0.5}})).layers[3].mixer).rope.width == 8);
  CHECK(std::get<AttentionSpec>(read(rope({{"partial_rotary_factor", 1}})).layers[3].mixer).rope.width == 0);
  check_refused(rope({{"partial_rotary_factor", 0.3}}), {"partial_rotary_factor", "0.3", "16"});
  check_refused(rope({{"partial_rotary_factor", 1.5}}), {"partial_rotary_factor", "1.5"});
  check_refused(rope({{"mrope_section", {1, 1, 1}}}), {"mrope_section", "2"});
  check_refused(rope({{"mrope_section", {-1, 1, 2}}}), {"mrope_section"});
  check_refused(
      with(qwen3_5_text(), {{"partial_rotary_factor", 0.5}, {"rope_parameters", {{"partial_rotary_factor", 0.25}}}}),
      {"partial_rotary_factor", "0.5", "0.25"});
}

TEST_CASE("experts are counted, chosen and named as their family has it") {
  const ModelSpec model = read(mixtral());
  const auto& moe = std::get<MoeSpec>(model.layers[0].ffn);
  CHECK(moe.num_experts == 4);
  CHECK(moe.experts_per_token == 2);
  CHECK(moe.num_features == 12);
  CHECK(moe.renormalize);
  CHECK(moe.aux_loss_coefficient == 0.5);
  CHECK(shape_of(model, "model.layers.3.block_sparse_moe.experts.3.w2.weight") == std::vector<std::int64_t>{8, 12});
  CHECK(read(with(mixtral(), {{"num_experts", 4}})).layers.size() == 4);  // said twice, alike
  check_refused(with(mixtral(), {{"num_experts", 5}}), {"num_local_experts", "num_experts", "5"});
  check_refused(with(mixtral(), {{"num_experts_per_tok", 5}}), {"num_experts_per_tok", "5", "4"});
  check_refused(with(mixtral(), {{"router_jitter_noise", 0.1}}), {"router_jitter_noise"});
  check_refused(with(mixtral(), {{"num_hidden_layers", 1000}, {"num_local_experts", 1000}}), {"experts"});
  check_refused(with(mixtral(), {{"num_local_experts", std::int64_t{1} << 50}}), {"num_experts"});
}

TEST_CASE("some layers of Qwen3-MoE may have a plain feed-forward part") {
  const auto has_experts = [](const LayerSpec& layer) { return std::holds_alternative<MoeSpec>(layer.ffn); };
  const ModelSpec all = read(qwen3_moe());
  for (const LayerSpec& layer : all.layers) CHECK(has_experts(layer));
  CHECK_FALSE(std::get<MoeSpec>(all.layers[0].ffn).renormalize);
  const ModelSpec some =
      read(with(qwen3_moe(), {{"decoder_sparse_step", 2}, {"mlp_only_layers", {3}}, {"intermediate_size", 12}}));
  for (int i = 0; i < 4; ++i) CHECK(has_experts(some.layers[i]) == (i == 1));
  CHECK(shape_of(some, "model.layers.0.mlp.up_proj.weight") == std::vector<std::int64_t>{12, 8});
  CHECK(shape_of(some, "model.layers.1.mlp.experts.0.up_proj.weight") == std::vector<std::int64_t>{6, 8});
  check_refused(with(qwen3_moe(), {{"mlp_only_layers", {0}}}), {"intermediate_size", "missing"});
  check_refused(with(qwen3_moe(), {{"mlp_only_layers", {4}}}), {"mlp_only_layers[0]", "4"});
  check_refused(with(qwen3_moe(), {{"decoder_sparse_step", 0}}), {"decoder_sparse_step"});
}

TEST_CASE("Qwen3-Next groups the projections of DeltaNet and has a shared expert") {
  const ModelSpec model = read(qwen3_next());
  CHECK(shape_of(model, "model.layers.0.linear_attn.in_proj_qkvz.weight") == std::vector<std::int64_t>{112, 8});
  CHECK(shape_of(model, "model.layers.0.linear_attn.in_proj_ba.weight") == std::vector<std::int64_t>{12, 8});
  CHECK(shape_of(model, "model.layers.0.mlp.shared_expert.down_proj.weight") == std::vector<std::int64_t>{8, 10});
  CHECK(shape_of(model, "model.layers.0.mlp.shared_expert_gate.weight") == std::vector<std::int64_t>{1, 8});
  const auto& moe = std::get<MoeSpec>(model.layers[0].ffn);
  CHECK(moe.shared_gate);
  CHECK(moe.renormalize);
}

TEST_CASE("Qwen3.5-MoE keeps all experts of a layer in two tensors") {
  json text = with(qwen3_next(), {{"model_type", "qwen3_5_moe_text"}});
  const ModelSpec model = read(wrapped(text));
  const std::string prefix = "model.language_model.layers.0.";
  CHECK(shape_of(model, prefix + "mlp.experts.gate_up_proj") == std::vector<std::int64_t>{8, 12, 8});
  CHECK(shape_of(model, prefix + "mlp.experts.down_proj") == std::vector<std::int64_t>{8, 8, 6});
  CHECK(shape_of(model, prefix + "linear_attn.in_proj_qkv.weight") == std::vector<std::int64_t>{64, 8});
  CHECK(num_parameters(model) == num_parameters(read(qwen3_next())));
}

TEST_CASE("what the engine does not run is said in one line") {
  CHECK_NOTHROW(check_trainable(read_model_spec("tests/data/configs/qwen3-8b.json")));
  CHECK_THROWS_WITH_AS(check_trainable(read(qwen3_5_text())),
                       doctest::Contains("Gated DeltaNet, attention with an output gate, zero-centred norms"),
                       UsageError);
  CHECK_THROWS_WITH_AS(check_trainable(read(mixtral())), doctest::Contains("mixtral does not run yet"), UsageError);
}
