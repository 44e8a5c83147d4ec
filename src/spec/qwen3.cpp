// Qwen3 dense (models.md 2 and 3.1): as Llama, with an RMSNorm on q and k of every head.
#include "spec/catalogue.h"

namespace octavo {

ModelSpec read_qwen3(ConfigReader& config) {
  ModelSpec model = config.model(/*default_positions=*/32768);
  const AttentionSpec attention = config.attention(model, {.qk_norm = true});
  config.check_absent("head_dim", attention.head_dim, 128);
  config.full_attention_layers(model, /*hybrid=*/false);
  model.layers.assign(static_cast<std::size_t>(config.num_layers()), LayerSpec{attention, config.mlp()});
  // The window and its first layer mean something only when it is used.
  config.expect("use_sliding_window", false, "sliding windows are not built");
  config.keys.ignore("sliding_window");
  config.finish(model);
  return model;
}

}  // namespace octavo
