// Qwen3 dense (models.md 2 and 3.1): as Llama, with an RMSNorm on q and k of every head.
#include "octavo/base/text.h"
#include "spec/catalogue.h"

namespace octavo {
namespace {

// Where transformers' own default is a number and not derived from the other sizes, an absent key means two things to
// two readers. `derived` must then be that number.
void check_absent(const ConfigReader& config, bool absent, const char* key, std::int64_t derived, std::int64_t theirs) {
  if (absent && derived != theirs) {
    config.keys.fail(key, cat("is absent; transformers reads that as ", theirs, ", the other sizes say ", derived,
                              "; write the key"));
  }
}

}  // namespace

ModelSpec read_qwen3(ConfigReader& config) {
  ModelSpec model = config.model(/*default_positions=*/32768);
  const LayerSpec layer = config.layer(model, /*qk_norm=*/true);
  const auto& attention = std::get<AttentionSpec>(layer.mixer);
  check_absent(config, config.keys.find("head_dim") == nullptr, "head_dim", attention.head_dim, 128);
  config.repeat(model, layer);
  // The window and its first layer mean something only when it is used.
  config.expect("use_sliding_window", false, "sliding windows are not built");
  config.keys.ignore("sliding_window");
  config.finish(model);
  return model;
}

}  // namespace octavo
