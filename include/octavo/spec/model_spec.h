// What a model is, read from its config.json: sizes, blocks and their parameters. No weights, no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace octavo {

/// Rotary embedding (models.md 5.2). angle = position * inv_freq_j, pairs (j, j + head_dim/2).
struct RopeSpec {
  double theta = 10000.0;
  struct Llama3 {  // frequency scaling of Llama 3.1
    double factor, low_freq_factor, high_freq_factor;
    std::int64_t original_max_positions;
    bool operator==(const Llama3&) const = default;
  };
  std::optional<Llama3> llama3;  // absent: rope_type "default"

  bool operator==(const RopeSpec&) const = default;
};

/// Causal softmax attention; its unit is one KV head with its query heads.
struct AttentionSpec {
  std::int64_t num_heads = 0;  // query heads; a multiple of num_kv_heads
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  // even
  bool qk_norm = false;       // RMSNorm over head_dim on q and k before the rotary embedding (Qwen3)
  RopeSpec rope;
};

/// down(silu(gate x) * up x); its unit is one feature.
struct GatedMlpSpec {
  std::int64_t num_features = 0;  // intermediate_size
};

struct LayerSpec {
  std::variant<AttentionSpec> mixer;  // where tokens meet tokens
  std::variant<GatedMlpSpec> ffn;     // position by position
};

struct ModelSpec {
  std::string model_type;  // as in config.json: "llama", "qwen3"
  std::int64_t hidden_size = 0;
  std::int64_t vocab_size = 0;
  double norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tied_embeddings = false;    // the head's matrix is the embedding's; one gradient, the sum of both uses
  std::int64_t max_positions = 0;  // the context that the model was made for; informative
  std::vector<LayerSpec> layers;
  std::string config_json;  // the file as read, so that a saved model carries every key on
};

/// A parameter as a checkpoint file holds it. Linear weights are [out, in].
struct ParameterSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;
};

/// Reads and checks a config.json (or the one in a model folder). Old and new forms of the keys are accepted.
/// Throws UsageError, in one line that names file, key, value and remedy, for anything missing, of the wrong type,
/// out of range, unknown, or not built (a model type, an activation, a rope type, biases, dropout).
ModelSpec read_model_spec(const std::filesystem::path& file_or_folder);

/// The same from text; `origin` is the name used in messages.
ModelSpec parse_model_spec(const std::string& json_text, const std::string& origin);

/// Every parameter of the model in checkpoint order (embedding, layers, final norm, head). A tied head has none.
std::vector<ParameterSpec> parameters(const ModelSpec& model);

/// Elements of all parameters; a tied matrix counts once.
std::int64_t num_parameters(const ModelSpec& model);

}  // namespace octavo
