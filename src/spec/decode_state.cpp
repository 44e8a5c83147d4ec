#include "octavo/spec/decode_state.h"

namespace octavo {
namespace {

constexpr Bytes kFloatBytes = 4;

struct CacheElements {  // per token
  std::int64_t operator()(const AttentionSpec& spec) const { return 2 * spec.num_kv_heads * spec.head_dim; }
  std::int64_t operator()(const DeltaNetSpec&) const { return 0; }
  std::int64_t operator()(const LatentAttentionSpec& spec) const { return spec.kv_rank + spec.rope_dim; }
};

}  // namespace

Bytes kv_cache_bytes_per_token(const ModelSpec& model, Bytes element_bytes) {
  std::int64_t elements = 0;
  for (const LayerSpec& layer : model.layers) elements += std::visit(CacheElements(), layer.mixer);
  return elements * element_bytes;
}

Bytes recurrent_state_bytes(const DeltaNetSpec& spec) {
  return spec.num_value_heads * spec.key_dim * spec.value_dim * kFloatBytes;
}

Bytes recurrent_state_bytes(const ModelSpec& model) {
  Bytes bytes = 0;
  for (const LayerSpec& layer : model.layers) {
    if (const auto* spec = std::get_if<DeltaNetSpec>(&layer.mixer)) bytes += recurrent_state_bytes(*spec);
  }
  return bytes;
}

Bytes affine_summary_bytes(const DeltaNetSpec& spec) {
  return spec.num_value_heads * spec.key_dim * (spec.key_dim + spec.value_dim) * kFloatBytes;
}

Bytes conv_state_bytes(const DeltaNetSpec& spec, Bytes element_bytes) {
  return (spec.conv_width - 1) * spec.conv_channels() * element_bytes;
}

}  // namespace octavo
