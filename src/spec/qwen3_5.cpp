// Qwen3.5 (models.md 2.1 and 3.2): the hybrid with a gated MLP in every layer. As published it stands beside a vision
// tower, which is left out: the keys of the text model are in text_config, its tensors under model.language_model.
#include "spec/catalogue.h"
#include "spec/hybrid.h"
#include "spec/vision_wrapper.h"

namespace octavo {

ModelSpec read_qwen3_5_text(ConfigReader& config) {
  ModelSpec model = read_hybrid_mixers(config, /*has_sections=*/true);
  config.expect("mlp_only_layers", nlohmann::json::array(), "this type has no experts that layers could lack");
  for (LayerSpec& layer : model.layers) layer.ffn = config.mlp();
  config.finish(model);
  return model;
}

ModelSpec read_qwen3_5(ConfigReader& config) {
  return read_text_of_wrapper(config, "qwen3_5_text", read_qwen3_5_text);
}

}  // namespace octavo
