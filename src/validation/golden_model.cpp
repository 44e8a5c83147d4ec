#include "octavo/validation/golden_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

using nlohmann::json;

std::int64_t dimension(JsonObject& entry, const std::string& key) {
  const std::int64_t value = entry.integer(key);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (value < 1) entry.fail(key, cat("is ", value, "; a dimension is at least 1"));
  if (value > kMost) entry.fail(key, cat("is ", value, "; a dimension is at most ", kMost));
  return value;
}

std::int64_t dimension_or(JsonObject& entry, const std::string& key, std::int64_t otherwise) {
  return entry.find_integer(key) ? dimension(entry, key) : otherwise;
}

LatentAttentionSpec latent_attention(JsonObject& entry) {
  LatentAttentionSpec spec;
  spec.num_heads = dimension(entry, "query_heads");
  spec.query_rank = entry.find_integer("q_lora").value_or(0);
  spec.kv_rank = dimension(entry, "kv_lora");
  spec.rope_dim = dimension(entry, "rope_dim");
  spec.head_dim = dimension(entry, "head_dim");
  spec.value_dim = dimension_or(entry, "v_dim", spec.head_dim);
  return spec;
}

AttentionSpec attention(JsonObject& entry, std::int64_t hidden) {
  AttentionSpec spec;
  spec.num_heads = dimension(entry, "query_heads");
  spec.num_kv_heads = dimension_or(entry, "kv_heads", spec.num_heads);
  spec.head_dim = dimension_or(entry, "head_dim", std::max<std::int64_t>(1, hidden / spec.num_heads));
  return spec;
}

MoeSpec experts(JsonObject& entry) {
  MoeSpec spec;
  spec.num_experts = dimension(entry, "experts");
  spec.experts_per_token = dimension(entry, "top_k");
  spec.num_features = dimension(entry, "expert_ffn");
  spec.shared_features = entry.find_integer("shared_ffn").value_or(0);
  return spec;
}

/// Public models that rows name and files need not repeat; names without dashes.
struct KnownModel {
  const char* name;
  int hidden, ffn, layers, query_heads, kv_heads, head_dim, vocab;
};
constexpr KnownModel kKnownModels[] = {
    {"llama7b", 4096, 11008, 32, 32, 32, 128, 32000},     {"llama27b", 4096, 11008, 32, 32, 32, 128, 32000},
    {"llama13b", 5120, 13824, 40, 40, 40, 128, 32000},    {"llama213b", 5120, 13824, 40, 40, 40, 128, 32000},
    {"llama270b", 8192, 28672, 80, 64, 8, 128, 32000},    {"llama38b", 4096, 14336, 32, 32, 8, 128, 128256},
    {"llama3.18b", 4096, 14336, 32, 32, 8, 128, 128256},  {"llama370b", 8192, 28672, 80, 64, 8, 128, 128256},
    {"llama3.170b", 8192, 28672, 80, 64, 8, 128, 128256}, {"llama3.1405b", 16384, 53248, 126, 128, 8, 128, 128256},
    {"qwen38b", 4096, 12288, 36, 32, 8, 128, 151936},     {"qwen332b", 5120, 25600, 64, 64, 8, 128, 151936},
};

std::optional<json> known_dimensions(std::string name) {
  std::erase(name, '-');
  for (const KnownModel& known : kKnownModels) {
    if (name != known.name) continue;
    return json{{"kind", "llama"},
                {"hidden", known.hidden},
                {"ffn", known.ffn},
                {"layers", known.layers},
                {"query_heads", known.query_heads},
                {"kv_heads", known.kv_heads},
                {"head_dim", known.head_dim},
                {"vocab", known.vocab},
                {"gated_mlp", true},
                {"tied_embeddings", false}};
  }
  return std::nullopt;
}

}  // namespace

ModelSpec golden_model(const json& value, const std::string& name) {
  JsonObject entry(value, cat("[validation] model ", name));
  const std::string kind = entry.text("kind");
  const bool has_experts = kind == "moe" || kind == "moe-mla";
  if (!has_experts && kind != "llama" && kind != "gpt") {
    entry.fail("kind", cat("is ", kind, "; use llama, gpt, moe or moe-mla"));
  }
  ModelSpec model;
  model.model_type = kind;
  model.hidden_size = dimension(entry, "hidden");
  model.vocab_size = dimension(entry, "vocab");
  model.tied_embeddings = entry.find_boolean("tied_embeddings").value_or(false);
  const std::int64_t num_layers = dimension(entry, "layers");
  constexpr std::int64_t kMostLayers = 100'000;
  if (num_layers > kMostLayers) entry.fail("layers", cat("is ", num_layers, "; use at most ", kMostLayers));
  const std::int64_t num_dense = has_experts ? entry.find_integer("dense_layers").value_or(0) : num_layers;
  const bool gated = entry.find_boolean("gated_mlp").value_or(kind != "gpt");
  for (std::int64_t i = 0; i < num_layers; ++i) {
    LayerSpec layer;
    if (kind == "moe-mla") {
      layer.mixer = latent_attention(entry);
    } else {
      layer.mixer = attention(entry, model.hidden_size);
    }
    if (i >= num_dense) {
      layer.ffn = experts(entry);
    } else if (gated) {
      layer.ffn = GatedMlpSpec{dimension(entry, "ffn")};
    } else {
      layer.ffn = PlainMlpSpec{dimension(entry, "ffn")};
    }
    model.layers.push_back(layer);
  }
  return model;
}

std::optional<ModelSpec> find_golden_model(const json& models, const std::string& name,
                                           std::optional<std::int64_t> layers) {
  json entry;
  if (models.is_object() && models.contains(name)) {
    entry = models[name];
  } else if (const std::optional<json> known = known_dimensions(name)) {
    entry = *known;
  } else {
    return std::nullopt;
  }
  if (layers) entry["layers"] = *layers;
  return golden_model(entry, name);
}

}  // namespace octavo
