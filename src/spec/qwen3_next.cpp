// Qwen3-Next (models.md 3.3): the hybrid with experts; the rows of DeltaNet's projections grouped by key head.
#include "spec/catalogue.h"
#include "spec/hybrid.h"

namespace octavo {

ModelSpec read_qwen3_next(ConfigReader& config) {
  ModelSpec model = read_hybrid_mixers(config, /*has_sections=*/false);
  const MoeSpec moe = read_hybrid_moe(config);
  config.keys.ignore("intermediate_size");  // of the layers without experts: read where there is one
  const std::vector<bool> has_experts = config.expert_layers();
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (has_experts[i]) {
      model.layers[i].ffn = moe;
    } else {
      model.layers[i].ffn = config.mlp();
    }
  }
  model.form.grouped_delta_net = true;
  config.finish(model);
  return model;
}

}  // namespace octavo
