// Mixtral (models.md 3.4 and 4.6): Llama's attention; in every layer experts, whose probabilities are renormalised.
#include "spec/catalogue.h"

namespace octavo {

ModelSpec read_mixtral(ConfigReader& config) {
  ModelSpec model = config.model(/*default_positions=*/131072);
  const AttentionSpec attention = config.attention(model, {.rope = {.theta = 1e6}});
  config.check_absent("num_key_value_heads", attention.num_kv_heads, 8);
  MoeSpec moe = config.moe("intermediate_size", /*default_loss_coefficient=*/0.001);
  moe.renormalize = true;
  config.full_attention_layers(model, /*hybrid=*/false);
  model.layers.assign(static_cast<std::size_t>(config.num_layers()), LayerSpec{attention, moe});
  model.form.experts = CheckpointForm::Experts::Mixtral;
  config.expect("sliding_window", nullptr, "sliding windows are not built");
  config.finish(model);
  return model;
}

}  // namespace octavo
