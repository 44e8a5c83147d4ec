// Qwen3.5-MoE (models.md 3.4): as Qwen3.5, with experts in every layer, all of them in two tensors.
#include "spec/catalogue.h"
#include "spec/hybrid.h"
#include "spec/vision_wrapper.h"

namespace octavo {

ModelSpec read_qwen3_5_moe_text(ConfigReader& config) {
  ModelSpec model = read_hybrid_mixers(config, /*has_sections=*/true);
  const MoeSpec moe = read_hybrid_moe(config);
  config.keys.ignore("intermediate_size");
  config.expect("mlp_only_layers", nlohmann::json::array(), "every layer of this type has experts");
  config.expect("decoder_sparse_step", 1, "every layer of this type has experts");
  for (LayerSpec& layer : model.layers) layer.ffn = moe;
  model.form.experts = CheckpointForm::Experts::Fused;
  config.finish(model);
  return model;
}

ModelSpec read_qwen3_5_moe(ConfigReader& config) {
  return read_text_of_wrapper(config, "qwen3_5_moe_text", read_qwen3_5_moe_text);
}

}  // namespace octavo
