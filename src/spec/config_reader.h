// What the config.json files of all model types have in common: sizes with their rules, keys that must have one value,
// keys of no consequence.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "octavo/base/json.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

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

  /// model_type, sizes of the stack, norm, initializer, tied embeddings, context; `default_positions` is what
  /// transformers assumes for max_position_embeddings. The layers come after, from layer().
  ModelSpec model(std::int64_t default_positions);

  /// Keys of attention and MLP: heads, head_dim (hidden_size / num_attention_heads where absent), rope, activation.
  LayerSpec layer(const ModelSpec& model, bool qk_norm);

  /// `num_hidden_layers` times `layer`; layer_types, if there, must say full_attention for each.
  void repeat(ModelSpec& model, const LayerSpec& layer);

  /// Keys that change nothing here: token ids, versions, caching. Then refuses unknown keys and sizes whose products
  /// overflow.
  void finish(const ModelSpec& model);

 private:
  AttentionSpec attention(const ModelSpec& model, bool qk_norm);
  std::int64_t num_layers_ = 0;
};

/// rope_theta with rope_scaling (old form), rope_parameters (new form), or neither (`theta` 10000).
RopeSpec read_rope(ConfigReader& config);

}  // namespace octavo
