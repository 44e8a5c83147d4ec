// Llama (models.md 2 and 3.1): RMSNorm, rotary attention with grouped KV heads, gated MLP, no biases.
#include "spec/catalogue.h"

namespace octavo {

ModelSpec read_llama(ConfigReader& config) {
  ModelSpec model = config.model(/*default_positions=*/2048);
  const LayerSpec layer{config.attention(model, {}), config.mlp()};
  config.full_attention_layers(model, /*hybrid=*/false);
  model.layers.assign(static_cast<std::size_t>(config.num_layers()), layer);
  config.expect("mlp_bias", false, "biases in model.safetensors are not built");
  config.expect("use_sliding_window", false, "sliding windows are not built");
  config.expect("sliding_window", nullptr, "sliding windows are not built");
  config.finish(model);
  return model;
}

}  // namespace octavo
