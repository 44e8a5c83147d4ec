#include <memory>

#include "octavo/base/json.h"
#include "validation/answers.h"
#include "validation/audit_answers.h"

namespace octavo {
namespace {

/// A file's "model", as the config that has these dimensions. One layer of multi-token prediction, as these models are
/// published with.
ModelSpec hybrid_model(const json& sizes) {
  const std::int64_t layers = count(sizes, "layers"), every = count(sizes, "full_attention_every");
  json kinds = json::array();
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    kinds.push_back(layer % every == 0 ? "full_attention" : "linear_attention");
  }
  const json config{
      {"model_type", "qwen3_5_text"},
      {"hidden_size", count(sizes, "hidden")},
      {"intermediate_size", count(sizes, "intermediate")},
      {"num_hidden_layers", layers},
      {"layer_types", kinds},
      {"full_attention_interval", every},
      {"num_attention_heads", count(sizes, "query_heads")},
      {"num_key_value_heads", count(sizes, "kv_heads")},
      {"head_dim", count(sizes, "head_dim")},
      {"linear_num_key_heads", count(sizes, "gdn_qk_heads")},
      {"linear_num_value_heads", count(sizes, "gdn_v_heads")},
      {"linear_key_head_dim", count(sizes, "gdn_head_dim")},
      {"linear_value_head_dim", count(sizes, "gdn_head_dim")},
      {"linear_conv_kernel_dim", count(sizes, "conv_width")},
      {"vocab_size", count(sizes, "vocab")},
      {"tie_word_embeddings", sizes.at("tied")},
      {"attn_output_gate", sizes.at("q_proj_has_gate")},
      {"max_position_embeddings", count(sizes, "context")},
      {"mtp_num_hidden_layers", 1},
      {"hidden_act", "silu"},
      {"rms_norm_eps", 1e-6},
      {"rope_parameters", {{"rope_theta", 1e7}, {"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}};
  return parse_model_spec(config.dump(), "[validation] \"model\"");
}

}  // namespace

Answer audit_answer(const json& file) {
  const json sizes = file.is_object() ? file.value("model", json()) : json();
  if (!sizes.is_object() || !sizes.contains("full_attention_every")) {
    return [](const json&) { return json(); };
  }
  auto audit = std::make_shared<const Audit>(hybrid_model(sizes));
  std::map<std::string, AuditAnswer> answers = audit_size_answers();
  answers.merge(audit_stage_answers());
  return [audit, answers](const json& item) -> json {
    for (const auto& [key, answer] : answers) {
      if (item["expect"].contains(key)) return answer(*audit, item["input"], item["expect"]);
    }
    return {};
  };
}

}  // namespace octavo
