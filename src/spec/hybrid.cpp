#include "spec/hybrid.h"

#include "octavo/base/text.h"

namespace octavo {

ModelSpec read_hybrid_mixers(ConfigReader& config, bool has_sections) {
  ModelSpec model = config.model(/*default_positions=*/32768);
  const AttentionSpec attention =
      config.attention(model, {.qk_norm = true,
                               .output_gate = true,
                               .rope = {.rotary_factor = 0.25, .may_be_partial = true, .has_sections = has_sections}});
  config.check_absent("head_dim", attention.head_dim, 256);
  config.expect("attn_output_gate", true, "softmax attention of this type has an output gate");
  const DeltaNetSpec delta_net = config.delta_net();
  for (const bool is_full : config.full_attention_layers(model, /*hybrid=*/true)) {
    model.layers.emplace_back();
    if (is_full) {
      model.layers.back().mixer = attention;
    } else {
      model.layers.back().mixer = delta_net;
    }
  }
  model.zero_centred_norms = true;
  model.form.may_have_mtp = true;
  constexpr std::int64_t kMostMtpLayers = 16;
  model.num_mtp_layers = config.keys.find_integer("mtp_num_hidden_layers").value_or(0);
  if (model.num_mtp_layers < 0 || model.num_mtp_layers > kMostMtpLayers) {
    config.keys.fail("mtp_num_hidden_layers",
                     cat("is ", model.num_mtp_layers, "; it must be at least 0 and at most ", kMostMtpLayers));
  }
  config.expect("mtp_use_dedicated_embeddings", false, "embeddings of their own for MTP blocks are not built");
  config.expect("use_sliding_window", false, "sliding windows are not built");
  config.keys.ignore("sliding_window");
  return model;
}

MoeSpec read_hybrid_moe(ConfigReader& config) {
  MoeSpec moe = config.moe("moe_intermediate_size", /*default_loss_coefficient=*/0.001);
  moe.shared_features = config.size("shared_expert_intermediate_size");
  moe.shared_gate = true;
  moe.renormalize = config.keys.find_boolean("norm_topk_prob").value_or(true);
  return moe;
}

}  // namespace octavo
