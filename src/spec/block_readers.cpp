#include <algorithm>
#include <nlohmann/json.hpp>

#include "octavo/base/text.h"
#include "spec/config_reader.h"

namespace octavo {

AttentionSpec ConfigReader::attention(const ModelSpec& model, const AttentionRules& rules) {
  AttentionSpec attention;
  attention.num_heads = size("num_attention_heads");
  attention.num_kv_heads = size_or("num_key_value_heads", attention.num_heads);
  if (attention.num_heads % attention.num_kv_heads != 0) {
    keys.fail("num_attention_heads", cat("is ", attention.num_heads, " and num_key_value_heads is ",
                                         attention.num_kv_heads, "; the first must be a multiple of the second"));
  }
  if (keys.find("head_dim") == nullptr && model.hidden_size % attention.num_heads != 0) {
    keys.fail("head_dim", cat("is absent, and hidden_size = ", model.hidden_size,
                              " is no multiple of num_attention_heads = ", attention.num_heads, "; write head_dim"));
  }
  attention.head_dim = size_or("head_dim", std::max<std::int64_t>(1, model.hidden_size / attention.num_heads));
  if (attention.head_dim % 2 != 0) {
    keys.fail("head_dim",
              cat("is ", attention.head_dim, "; it must be even, because the rotary embedding turns pairs"));
  }
  attention.qk_norm = rules.qk_norm;
  attention.output_gate = rules.output_gate;
  attention.rope = read_rope(*this, attention.head_dim, rules.rope);
  expect("attention_bias", false, "biases in model.safetensors are not built");
  expect("attention_dropout", 0, "dropout is not built");
  expect("rope_interleaved", false, "interleaved rotary pairs are not built");
  return attention;
}

GatedMlpSpec ConfigReader::mlp(const std::string& size_key) {
  expect("hidden_act", "silu", "other activations are not built");
  return {.num_features = size(size_key)};
}

MoeSpec ConfigReader::moe(const std::string& size_key, double default_loss_coefficient) {
  expect("hidden_act", "silu", "other activations are not built");
  const bool has_old = keys.find("num_experts") != nullptr, has_new = keys.find("num_local_experts") != nullptr;
  MoeSpec moe;
  const char* key = has_new ? "num_local_experts" : "num_experts";
  moe.num_experts = size(key);
  if (has_old && size("num_experts") != moe.num_experts) {
    keys.fail(key, cat("is ", moe.num_experts, " and num_experts is ", size("num_experts"), "; keep one of them"));
  }
  moe.experts_per_token = size("num_experts_per_tok");
  if (moe.experts_per_token > moe.num_experts) {
    keys.fail("num_experts_per_tok",
              cat("is ", moe.experts_per_token, " and exceeds ", key, " = ", moe.num_experts, "; lower it"));
  }
  moe.num_features = size(size_key);
  moe.aux_loss_coefficient = not_negative_or("router_aux_loss_coef", default_loss_coefficient);
  expect("router_jitter_noise", 0, "noise on the router is not built");
  keys.find_boolean("output_router_logits");  // what else a forward pass returns
  return moe;
}

DeltaNetSpec ConfigReader::delta_net() {
  DeltaNetSpec spec{.num_key_heads = size("linear_num_key_heads"),
                    .num_value_heads = size("linear_num_value_heads"),
                    .key_dim = size("linear_key_head_dim"),
                    .value_dim = size("linear_value_head_dim"),
                    .conv_width = size("linear_conv_kernel_dim")};
  if (spec.num_value_heads % spec.num_key_heads != 0) {
    keys.fail("linear_num_value_heads", cat("is ", spec.num_value_heads, " and linear_num_key_heads is ",
                                            spec.num_key_heads, "; the first must be a multiple of the second"));
  }
  expect("mamba_ssm_dtype", "float32", "states of another type are not built");
  if (const auto gate = keys.find_text("output_gate_type"); gate && *gate != "swish" && *gate != "silu") {
    keys.fail("output_gate_type", cat("is ", in_quotes(*gate), "; swish and silu, which are the same, are built"));
  }
  return spec;
}

std::vector<bool> ConfigReader::full_attention_layers(const ModelSpec& model, bool hybrid) {
  constexpr std::int64_t kDefaultInterval = 4;
  const nlohmann::json* types = keys.find("layer_types");
  const bool has_interval = hybrid && keys.find("full_attention_interval") != nullptr;
  const std::int64_t interval = hybrid ? size_or("full_attention_interval", kDefaultInterval) : 1;
  const auto type_of = [](bool full) { return full ? "full_attention" : "linear_attention"; };
  std::vector<bool> full(static_cast<std::size_t>(num_layers_));
  for (std::int64_t i = 0; i < num_layers_; ++i) full[i] = (i + 1) % interval == 0;
  if (types == nullptr) return full;
  if (!types->is_array() || static_cast<std::int64_t>(types->size()) != num_layers_) {
    const std::string found = types->is_array() ? cat("has ", types->size(), " entries") : "is " + show_json(*types);
    keys.fail("layer_types", cat(found, "; it must be a list of num_hidden_layers = ", num_layers_, " entries"));
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    const nlohmann::json& type = (*types)[i];
    const std::string key = cat("layer_types[", i, "]");
    if (type != "full_attention" && !(hybrid && type == "linear_attention")) {
      keys.fail(key, cat("is ", show_json(type), "; in ", in_quotes(model.model_type), " only \"full_attention\" ",
                         hybrid ? "and \"linear_attention\" are built" : "is built"));
    }
    const bool is_full = type == "full_attention";
    if (has_interval && is_full != full[i]) {
      keys.fail(key, cat("is ", show_json(type), "; full_attention_interval = ", interval, " says \"", type_of(full[i]),
                         "\" there; correct one of them"));
    }
    full[i] = is_full;
  }
  return full;
}

std::vector<bool> ConfigReader::expert_layers() {
  const std::int64_t step = size_or("decoder_sparse_step", 1);
  std::vector<bool> has_experts(static_cast<std::size_t>(num_layers_));
  for (std::int64_t i = 0; i < num_layers_; ++i) has_experts[i] = (i + 1) % step == 0;
  const nlohmann::json* dense = keys.find("mlp_only_layers");
  if (dense == nullptr) return has_experts;
  if (!dense->is_array()) keys.fail("mlp_only_layers", cat("is ", show_json(*dense), "; it must be a list of layers"));
  for (std::size_t i = 0; i < dense->size(); ++i) {
    const nlohmann::json& layer = (*dense)[i];
    if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= static_cast<std::uint64_t>(num_layers_)) {
      keys.fail(cat("mlp_only_layers[", i, "]"),
                cat("is ", show_json(layer), "; it must be a layer, 0 to ", num_layers_ - 1));
    }
    has_experts[layer.get<std::size_t>()] = false;
  }
  return has_experts;
}

}  // namespace octavo
