// What the config.json files of all model types have in common: sizes with their rules, keys that must have one value,
// keys of no consequence, and the blocks that several types share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "octavo/base/json.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// What transformers assumes where a config of this type does not say it.
struct RopeDefaults {
  double theta = 10000;
  double rotary_factor = 1;  // of the head that is turned
  bool may_be_partial = false;
  bool has_sections = false;  // mrope_section: positions in time, height and width, which are equal for text
};

struct AttentionRules {
  bool qk_norm = false;
  bool output_gate = false;
  RopeDefaults rope = {};
};

/// Reads one config.json. Every function throws UsageError, in one line that names file, key, value and rule.
class ConfigReader {
 public:
  /// `where` begins every message: "[spec] m/config.json". `config` must outlive this.
  ConfigReader(const nlohmann::json& config, std::string where) : keys(config, std::move(where)) {}

  JsonObject keys;

  /// A size that must be there: an integer in [1, 2^53].
  std::int64_t size(const std::string& key);
  /// The same, or `fallback` where the key is absent.
  std::int64_t size_or(const std::string& key, std::int64_t fallback);
  /// A finite number > 0 (or >= 0).
  double positive_or(const std::string& key, double fallback);
  double not_negative_or(const std::string& key, double fallback);

  /// Absent, null or `wanted`; anything else is refused, `because` telling why ("biases are not built").
  void expect(const std::string& key, const nlohmann::json& wanted, const std::string& because);

  /// Where transformers' own default is a number and not derived from the other sizes, an absent key means two things
  /// to two readers: `derived`, the value that was read, must then be `theirs`.
  void check_absent(const std::string& key, std::int64_t derived, std::int64_t theirs);

  /// model_type, sizes of the stack, norm, initializer, tied embeddings, context; `default_positions` is what
  /// transformers assumes for max_position_embeddings. The layers come after.
  ModelSpec model(std::int64_t default_positions);
  std::int64_t num_layers() const { return num_layers_; }

  /// Heads, head_dim (hidden_size / num_attention_heads where absent), rotary embedding.
  AttentionSpec attention(const ModelSpec& model, const AttentionRules& rules);
  /// intermediate_size, or the key named.
  GatedMlpSpec mlp(const std::string& size_key = "intermediate_size");
  /// num_experts or num_local_experts, num_experts_per_tok, the size of an expert, the loss that balances them.
  MoeSpec moe(const std::string& size_key, double default_loss_coefficient);
  DeltaNetSpec delta_net();

  /// Per layer, whether it has softmax attention: layer_types, and the rule of full_attention_interval where `hybrid`;
  /// where both are there they must agree. Not hybrid: all layers have it.
  std::vector<bool> full_attention_layers(const ModelSpec& model, bool hybrid);
  /// Per layer, whether it has experts: decoder_sparse_step and mlp_only_layers.
  std::vector<bool> expert_layers();

  /// Keys that change nothing here: token ids, versions, caching. Then refuses unknown keys and sizes whose products
  /// overflow.
  void finish(const ModelSpec& model);

 private:
  std::int64_t num_layers_ = 0;
};

/// rope_theta with rope_scaling (old form), rope_parameters (new form), or neither. `head_dim`: of which
/// partial_rotary_factor tells the part that is turned.
RopeSpec read_rope(ConfigReader& config, std::int64_t head_dim, const RopeDefaults& defaults);

/// Refuses sizes whose products overflow or whose parameters would not fit a table: beyond this point every product of
/// sizes of the model is safe. `keys` names the file.
void check_products(const ModelSpec& model, const JsonObject& keys);

}  // namespace octavo
