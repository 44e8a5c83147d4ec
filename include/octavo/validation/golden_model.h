// Models as the golden files describe them: by dimensions alone (tests/data/golden/, key "models"), in four kinds:
//   llama    attention with keys and values in groups, gated MLP, RMSNorm
//   gpt      the same with a plain MLP of two matrices where "gated_mlp" is false
//   moe      "experts" experts of "expert_ffn" features, "top_k" per token, and "shared_ffn" features for every token
//            (0 or absent: none), in all layers but the first "dense_layers", which have "ffn"
//   moe-mla  the same with latent attention: "q_lora" (absent: none), "kv_lora", "rope_dim", "head_dim", "v_dim"
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "octavo/spec/model_spec.h"

namespace octavo {

/// `entry` of "models". null counts as absent, other keys as notes. Throws UsageError that names `name` and the key for
/// a kind that is none of the four and a dimension that is missing or below 1.
ModelSpec golden_model(const nlohmann::json& entry, const std::string& name);

/// The model that a row names: of `models` (the file's), or a well-known public one that the file does not repeat
/// ("llama-7b"). nullopt if neither knows it. `layers`: in place of the model's own number.
std::optional<ModelSpec> find_golden_model(const nlohmann::json& models, const std::string& name,
                                           std::optional<std::int64_t> layers = std::nullopt);

}  // namespace octavo
