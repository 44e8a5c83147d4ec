#include <utility>

#include "octavo/base/text.h"
#include "octavo/spec/model_spec.h"

namespace octavo {
namespace {

// The parameters of one layer, under names that begin with `prefix`. H: hidden size.
class LayerParameters {
 public:
  LayerParameters(std::int64_t hidden_size, std::string prefix, std::vector<ParameterSpec>& list)
      : hidden_size_(hidden_size), prefix_(std::move(prefix)), list_(list) {}

  void add(const char* name, std::vector<std::int64_t> shape) {
    list_.push_back({.name = prefix_ + name, .shape = std::move(shape)});
  }

  void operator()(const AttentionSpec& attention) {
    const std::int64_t q_rows = attention.num_heads * attention.head_dim;
    const std::int64_t kv_rows = attention.num_kv_heads * attention.head_dim;
    add("self_attn.q_proj.weight", {q_rows, hidden_size_});
    add("self_attn.k_proj.weight", {kv_rows, hidden_size_});
    add("self_attn.v_proj.weight", {kv_rows, hidden_size_});
    if (attention.qk_norm) {
      add("self_attn.q_norm.weight", {attention.head_dim});
      add("self_attn.k_norm.weight", {attention.head_dim});
    }
    add("self_attn.o_proj.weight", {hidden_size_, q_rows});
  }

  void operator()(const GatedMlpSpec& mlp) {
    add("mlp.gate_proj.weight", {mlp.num_features, hidden_size_});
    add("mlp.up_proj.weight", {mlp.num_features, hidden_size_});
    add("mlp.down_proj.weight", {hidden_size_, mlp.num_features});
  }

 private:
  std::int64_t hidden_size_;
  std::string prefix_;
  std::vector<ParameterSpec>& list_;
};

}  // namespace

std::vector<ParameterSpec> parameters(const ModelSpec& model) {
  const std::int64_t hidden = model.hidden_size;
  std::vector<ParameterSpec> list;
  list.push_back({.name = "model.embed_tokens.weight", .shape = {model.vocab_size, hidden}});
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerParameters layer(hidden, cat("model.layers.", i, "."), list);
    layer.add("input_layernorm.weight", {hidden});
    std::visit(layer, model.layers[i].mixer);
    layer.add("post_attention_layernorm.weight", {hidden});
    std::visit(layer, model.layers[i].ffn);
  }
  list.push_back({.name = "model.norm.weight", .shape = {hidden}});
  if (!model.tied_embeddings) list.push_back({.name = "lm_head.weight", .shape = {model.vocab_size, hidden}});
  return list;
}

std::int64_t num_parameters(const ModelSpec& model) {
  std::int64_t total = 0;
  for (const ParameterSpec& parameter : parameters(model)) {
    std::int64_t elements = 1;
    for (const std::int64_t size : parameter.shape) elements *= size;
    total += elements;
  }
  return total;
}

}  // namespace octavo
