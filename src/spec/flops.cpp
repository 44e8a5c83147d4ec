#include "octavo/spec/flops.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::int64_t matmul_parameters(const ModelSpec& model) {
  std::int64_t total = model.vocab_size * model.hidden_size;  // the head
  for (const LayerSpec& layer : model.layers) {
    const auto& attention = std::get<AttentionSpec>(layer.mixer);
    const auto& mlp = std::get<GatedMlpSpec>(layer.ffn);
    const std::int64_t heads = 2 * attention.num_heads + 2 * attention.num_kv_heads;  // q and o, k and v
    total += model.hidden_size * (heads * attention.head_dim + 3 * mlp.num_features);
  }
  return total;
}

Flops forward_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths) {
  Flops attention_width = 0;  // A * D, summed over layers
  for (const LayerSpec& layer : model.layers) {
    const auto& attention = std::get<AttentionSpec>(layer.mixer);
    attention_width += static_cast<Flops>(attention.num_heads) * static_cast<Flops>(attention.head_dim);
  }
  const auto per_token = 2 * static_cast<Flops>(matmul_parameters(model));
  Flops total = 0;
  for (const std::int64_t length : sequence_lengths) {
    if (length < 0) throw UsageError(cat("[spec] a sequence of ", length, " tokens; a length is at least 0"));
    const auto tokens = static_cast<Flops>(length);
    total += per_token * tokens + 4 * attention_width * tokens * (tokens + 1) / 2;
  }
  return total;
}

Flops training_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths) {
  return 3 * forward_flops(model, sequence_lengths);
}

}  // namespace octavo
