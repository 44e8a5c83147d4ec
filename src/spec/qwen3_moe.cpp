// Qwen3-MoE (models.md 3.4 and 4.6): Qwen3's attention; experts in the layers that decoder_sparse_step and
// mlp_only_layers leave, gated MLPs in the others.
#include "spec/catalogue.h"

namespace octavo {

ModelSpec read_qwen3_moe(ConfigReader& config) {
  ModelSpec model = config.model(/*default_positions=*/32768);
  const AttentionSpec attention = config.attention(model, {.qk_norm = true});
  config.check_absent("num_key_value_heads", attention.num_kv_heads, 4);
  MoeSpec moe = config.moe("moe_intermediate_size", /*default_loss_coefficient=*/0.001);
  moe.renormalize = config.keys.find_boolean("norm_topk_prob").value_or(false);
  config.full_attention_layers(model, /*hybrid=*/false);
  config.keys.ignore("intermediate_size");  // of the layers without experts: read where there is one
  for (const bool has_experts : config.expert_layers()) {
    model.layers.push_back(has_experts ? LayerSpec{attention, moe} : LayerSpec{attention, config.mlp()});
  }
  config.expect("use_sliding_window", false, "sliding windows are not built");
  config.keys.ignore("sliding_window");
  config.finish(model);
  return model;
}

}  // namespace octavo
