#include "octavo/spec/parameters.h"

#include <algorithm>
#include <utility>

#include "octavo/base/text.h"

namespace octavo {
namespace {

// The parameters of one layer, under names that begin with `prefix`. H: hidden size.
class LayerParameters {
 public:
  LayerParameters(const ModelSpec& model, std::string prefix, std::vector<ParameterSpec>& list)
      : form_(model.form), hidden_size_(model.hidden_size), prefix_(std::move(prefix)), list_(list) {}

  void add_mixer(const LayerSpec& layer) {
    add("input_layernorm.weight", {hidden_size_});
    std::visit(*this, layer.mixer);
  }

  void add_ffn(const LayerSpec& layer) {
    add("post_attention_layernorm.weight", {hidden_size_});
    std::visit(*this, layer.ffn);
  }

  void operator()(const AttentionSpec& attention) {
    const std::int64_t q_rows = attention.num_heads * attention.head_dim;
    const std::int64_t kv_rows = attention.num_kv_heads * attention.head_dim;
    add("self_attn.q_proj.weight", {attention.output_gate ? 2 * q_rows : q_rows, hidden_size_});
    add("self_attn.k_proj.weight", {kv_rows, hidden_size_});
    add("self_attn.v_proj.weight", {kv_rows, hidden_size_});
    if (attention.qk_norm) {
      add("self_attn.q_norm.weight", {attention.head_dim});
      add("self_attn.k_norm.weight", {attention.head_dim});
    }
    add("self_attn.o_proj.weight", {hidden_size_, q_rows});
  }

  void operator()(const DeltaNetSpec& spec) {
    if (form_.grouped_delta_net) {
      add("linear_attn.in_proj_qkvz.weight", {spec.conv_channels() + spec.value_width(), hidden_size_});
      add("linear_attn.in_proj_ba.weight", {2 * spec.num_value_heads, hidden_size_});
    } else {
      add("linear_attn.in_proj_qkv.weight", {spec.conv_channels(), hidden_size_});
      add("linear_attn.in_proj_z.weight", {spec.value_width(), hidden_size_});
      add("linear_attn.in_proj_b.weight", {spec.num_value_heads, hidden_size_});
      add("linear_attn.in_proj_a.weight", {spec.num_value_heads, hidden_size_});
    }
    add("linear_attn.conv1d.weight", {spec.conv_channels(), 1, spec.conv_width});
    add("linear_attn.A_log", {spec.num_value_heads}, /*float32=*/true);
    add("linear_attn.dt_bias", {spec.num_value_heads});
    add("linear_attn.norm.weight", {spec.value_dim}, /*float32=*/true);
    add("linear_attn.out_proj.weight", {hidden_size_, spec.value_width()});
  }

  void operator()(const LatentAttentionSpec& spec) {
    const std::int64_t query_rows = spec.num_heads * (spec.head_dim + spec.rope_dim);
    if (spec.query_rank > 0) {
      add("self_attn.q_a_proj.weight", {spec.query_rank, hidden_size_});
      add("self_attn.q_a_layernorm.weight", {spec.query_rank});
      add("self_attn.q_b_proj.weight", {query_rows, spec.query_rank});
    } else {
      add("self_attn.q_proj.weight", {query_rows, hidden_size_});
    }
    add("self_attn.kv_a_proj_with_mqa.weight", {spec.kv_rank + spec.rope_dim, hidden_size_});
    add("self_attn.kv_a_layernorm.weight", {spec.kv_rank});
    add("self_attn.kv_b_proj.weight", {spec.num_heads * (spec.head_dim + spec.value_dim), spec.kv_rank});
    add("self_attn.o_proj.weight", {hidden_size_, spec.num_heads * spec.value_dim});
  }

  void operator()(const GatedMlpSpec& mlp) { add_gated_mlp("mlp.", mlp.num_features); }

  void operator()(const PlainMlpSpec& mlp) {
    add("mlp.up_proj.weight", {mlp.num_features, hidden_size_});
    add("mlp.down_proj.weight", {hidden_size_, mlp.num_features});
  }

  void operator()(const MoeSpec& moe) {
    const std::int64_t features = moe.num_features;
    switch (form_.experts) {
      case CheckpointForm::Experts::Qwen:
        add("mlp.gate.weight", {moe.num_experts, hidden_size_});
        for (std::int64_t e = 0; e < moe.num_experts; ++e) add_gated_mlp(cat("mlp.experts.", e, "."), features);
        break;
      case CheckpointForm::Experts::Mixtral:
        add("block_sparse_moe.gate.weight", {moe.num_experts, hidden_size_});
        for (std::int64_t e = 0; e < moe.num_experts; ++e) {
          const std::string expert = cat("block_sparse_moe.experts.", e, ".");
          add(expert + "w1.weight", {features, hidden_size_});
          add(expert + "w2.weight", {hidden_size_, features});
          add(expert + "w3.weight", {features, hidden_size_});
        }
        break;
      case CheckpointForm::Experts::Fused:
        add("mlp.gate.weight", {moe.num_experts, hidden_size_});
        add("mlp.experts.gate_up_proj", {moe.num_experts, 2 * features, hidden_size_});
        add("mlp.experts.down_proj", {moe.num_experts, hidden_size_, features});
        break;
    }
    if (moe.shared_features > 0) add_gated_mlp("mlp.shared_expert.", moe.shared_features);
    if (moe.shared_gate) add("mlp.shared_expert_gate.weight", {1, hidden_size_});
  }

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, bool float32 = false) {
    list_.push_back({.name = prefix_ + name, .shape = std::move(shape), .float32 = float32});
  }

  void add_gated_mlp(const std::string& name, std::int64_t features) {
    add(name + "gate_proj.weight", {features, hidden_size_});
    add(name + "up_proj.weight", {features, hidden_size_});
    add(name + "down_proj.weight", {hidden_size_, features});
  }

  const CheckpointForm& form_;
  std::int64_t hidden_size_;
  std::string prefix_;
  std::vector<ParameterSpec>& list_;
};

std::int64_t sum_elements(const std::vector<ParameterSpec>& list) {
  std::int64_t total = 0;
  for (const ParameterSpec& parameter : list) total += parameter.elements();
  return total;
}

}  // namespace

std::int64_t ParameterSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::vector<ParameterSpec> parameters(const ModelSpec& model) {
  const std::int64_t hidden = model.hidden_size;
  const std::string& prefix = model.form.prefix;
  std::vector<ParameterSpec> list;
  list.push_back({.name = prefix + "embed_tokens.weight", .shape = {model.vocab_size, hidden}});
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerParameters layer(model, cat(prefix, "layers.", i, "."), list);
    layer.add_mixer(model.layers[i]);
    layer.add_ffn(model.layers[i]);
  }
  list.push_back({.name = prefix + "norm.weight", .shape = {hidden}});
  if (!model.tied_embeddings) list.push_back({.name = "lm_head.weight", .shape = {model.vocab_size, hidden}});
  return list;
}

std::vector<ParameterSpec> mtp_parameters(const ModelSpec& model) {
  std::vector<ParameterSpec> list;
  if (model.num_mtp_layers == 0) return list;
  const std::int64_t hidden = model.hidden_size;
  list.push_back({.name = "mtp.fc.weight", .shape = {hidden, 2 * hidden}});
  list.push_back({.name = "mtp.pre_fc_norm_embedding.weight", .shape = {hidden}});
  list.push_back({.name = "mtp.pre_fc_norm_hidden.weight", .shape = {hidden}});
  list.push_back({.name = "mtp.norm.weight", .shape = {hidden}});
  // Each is a layer of the model that has softmax attention.
  const auto attends = [](const LayerSpec& layer) { return std::holds_alternative<AttentionSpec>(layer.mixer); };
  const auto layer = std::find_if(model.layers.begin(), model.layers.end(), attends);
  if (layer == model.layers.end()) return list;
  for (std::int64_t i = 0; i < model.num_mtp_layers; ++i) {
    LayerParameters parameters(model, cat("mtp.layers.", i, "."), list);
    parameters.add_mixer(*layer);
    parameters.add_ffn(*layer);
  }
  return list;
}

std::int64_t num_parameters(const ModelSpec& model) {
  return sum_elements(parameters(model));
}

std::int64_t num_mtp_parameters(const ModelSpec& model) {
  return sum_elements(mtp_parameters(model));
}

std::int64_t num_active_parameters(const ModelSpec& model) {
  std::int64_t total = num_parameters(model);
  for (const LayerSpec& layer : model.layers) {
    if (const auto* moe = std::get_if<MoeSpec>(&layer.ffn)) {
      total -= (moe->num_experts - moe->experts_per_token) * 3 * moe->num_features * model.hidden_size;
    }
  }
  return total;
}

std::int64_t mixer_parameters(const ModelSpec& model, const LayerSpec& layer) {
  std::vector<ParameterSpec> list;
  LayerParameters(model, "", list).add_mixer(layer);
  return sum_elements(list);
}

std::int64_t ffn_parameters(const ModelSpec& model, const LayerSpec& layer) {
  std::vector<ParameterSpec> list;
  LayerParameters(model, "", list).add_ffn(layer);
  return sum_elements(list);
}

std::int64_t num_experts(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    if (const auto* moe = std::get_if<MoeSpec>(&layer.ffn)) return moe->num_experts;
  }
  return 0;
}

Bytes file_bytes(const ModelSpec& model, Bytes element_bytes) {
  constexpr Bytes kFloatBytes = 4;
  Bytes bytes = 0;
  for (const ParameterSpec& parameter : parameters(model)) {
    bytes += parameter.elements() * (parameter.float32 ? std::max(kFloatBytes, element_bytes) : element_bytes);
  }
  return bytes;
}

}  // namespace octavo
