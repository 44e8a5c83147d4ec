// What a model is, read from its config.json: sizes, blocks and their parameters. No weights, no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace octavo {

/// Rotary embedding (models.md 5.2). angle = position * inv_freq_j, pairs (j, j + R/2) of the first R dimensions of a
/// head; the others pass unchanged.
struct RopeSpec {
  double theta = 10000.0;
  struct Llama3 {  // frequency scaling of Llama 3.1
    double factor, low_freq_factor, high_freq_factor;
    std::int64_t original_max_positions;
    bool operator==(const Llama3&) const = default;
  };
  std::optional<Llama3> llama3;  // absent: rope_type "default"
  std::int64_t width = 0;        // R, even; 0: all of the head

  bool operator==(const RopeSpec&) const = default;
};

/// Causal softmax attention; its unit is one KV head with its query heads and their gates.
struct AttentionSpec {
  std::int64_t num_heads = 0;  // query heads; a multiple of num_kv_heads
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  // even
  bool qk_norm = false;       // RMSNorm over head_dim on q and k before the rotary embedding (Qwen3)
  RopeSpec rope;
  bool output_gate = false;  // q_proj has, per head, rows of the query and of a gate on the head's output (Qwen3.5)
};

/// Gated DeltaNet (models.md 6): a linear recurrence; its unit is one key head with its value heads.
struct DeltaNetSpec {
  std::int64_t num_key_heads = 0;
  std::int64_t num_value_heads = 0;  // a multiple of num_key_heads
  std::int64_t key_dim = 0;          // K, of a head
  std::int64_t value_dim = 0;        // V; the state of a value head is [K, V]
  std::int64_t conv_width = 0;       // taps of the causal convolution over the q, k and v channels

  std::int64_t key_width() const { return num_key_heads * key_dim; }
  std::int64_t value_width() const { return num_value_heads * value_dim; }
  std::int64_t conv_channels() const { return 2 * key_width() + value_width(); }
};

/// Multi-head latent attention (DeepSeek-V2, 2024): keys and values come out of one narrow vector per token. Made from
/// its dimensions only: no config reader, no panels.
struct LatentAttentionSpec {
  std::int64_t num_heads = 0;
  std::int64_t query_rank = 0;  // width of the narrow vector behind the queries; 0: they come straight from the input
  std::int64_t kv_rank = 0;
  std::int64_t rope_dim = 0;  // of each query, and of the one key that all heads share
  std::int64_t head_dim = 0;  // of query and key, without the rotary part
  std::int64_t value_dim = 0;
};

/// down(silu(gate x) * up x); its unit is one feature.
struct GatedMlpSpec {
  std::int64_t num_features = 0;  // intermediate_size
};

/// down(act(up x)) (GPT): two matrices, no gate. Made from its dimension only, as LatentAttentionSpec.
struct PlainMlpSpec {
  std::int64_t num_features = 0;
};

/// Experts, each a gated MLP, of which a router chooses some per token (models.md 4.6); its unit is one expert. Beside
/// them there may be a shared expert that every token takes.
struct MoeSpec {
  std::int64_t num_experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t num_features = 0;     // of one expert
  std::int64_t shared_features = 0;  // of the shared expert; 0: there is none
  bool shared_gate = false;          // the shared expert's output is scaled by sigmoid(a row times x)
  bool renormalize = false;          // the chosen experts' probabilities are divided by their sum
  double aux_loss_coefficient = 0;   // of the load-balancing loss
};

struct LayerSpec {
  std::variant<AttentionSpec, DeltaNetSpec, LatentAttentionSpec> mixer;  // where tokens meet tokens
  std::variant<GatedMlpSpec, PlainMlpSpec, MoeSpec> ffn;                 // position by position
};

/// How the files of a family name and group their tensors (models.md 3).
struct CheckpointForm {
  enum class Experts {
    Qwen,     // mlp.experts.3.gate_proj.weight: a matrix per expert
    Mixtral,  // block_sparse_moe.experts.3.w1.weight
    Fused,    // mlp.experts.gate_up_proj [E, 2I, H]: one tensor of all experts (Qwen3.5)
  };
  std::string prefix = "model.";  // before all names but the head's; "model.language_model." beside a vision tower
  Experts experts = Experts::Qwen;
  bool grouped_delta_net = false;  // in_proj_qkvz and in_proj_ba, their rows grouped by key head (Qwen3-Next)
  bool may_have_mtp = false;       // files may hold blocks for multi-token prediction, under "mtp."
};

struct ModelSpec {
  std::string model_type;  // as in config.json: "llama", "qwen3_5"
  std::int64_t hidden_size = 0;
  std::int64_t vocab_size = 0;
  double norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool zero_centred_norms = false;  // norms outside DeltaNet multiply by 1 + weight (Qwen3-Next, Qwen3.5)
  bool tied_embeddings = false;     // the head's matrix is the embedding's; one gradient, the sum of both uses
  std::int64_t max_positions = 0;   // the context that the model was made for; informative
  std::vector<LayerSpec> layers;
  std::int64_t num_mtp_layers = 0;  // blocks for multi-token prediction beside the model; not among `layers`
  CheckpointForm form;
  std::string config_json;  // the file as read, so that a saved model carries every key on
};

/// A parameter as a checkpoint file holds it. Linear weights are [out, in].
struct ParameterSpec {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;
  bool float32 = false;  // published in float32 also where the file's other tensors are narrower

  std::int64_t elements() const;
};

/// Reads and checks a config.json (or the one in a model folder). Old and new forms of the keys are accepted.
/// Throws UsageError, in one line that names file, key, value and remedy, for anything missing, of the wrong type,
/// out of range, unknown, or not built (a model type, an activation, a rope type, biases, dropout).
ModelSpec read_model_spec(const std::filesystem::path& file_or_folder);

/// The same from text; `origin` is the name used in messages.
ModelSpec parse_model_spec(const std::string& json_text, const std::string& origin);

/// Throws UsageError, in one line, for a model of which the engine does not train every part: it trains softmax
/// attention without gate over whole-head rotary embeddings, gated MLPs and plain norms.
void check_trainable(const ModelSpec& model);

}  // namespace octavo
