#include "octavo/spec/flops.h"

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {
namespace {

struct MatrixRows {  // elements per hidden element, but for latent attention
  std::int64_t hidden;

  std::int64_t operator()(const AttentionSpec& spec) const {
    const std::int64_t heads = (spec.output_gate ? 3 : 2) * spec.num_heads + 2 * spec.num_kv_heads;
    return hidden * heads * spec.head_dim;
  }
  std::int64_t operator()(const DeltaNetSpec& spec) const {
    return hidden * (spec.conv_channels() + 2 * spec.value_width() + 2 * spec.num_value_heads);
  }
  std::int64_t operator()(const LatentAttentionSpec& spec) const {
    const std::int64_t query_rows = spec.num_heads * (spec.head_dim + spec.rope_dim);
    const std::int64_t queries = spec.query_rank > 0 ? spec.query_rank * (hidden + query_rows) : hidden * query_rows;
    return queries + hidden * (spec.kv_rank + spec.rope_dim) +
           spec.kv_rank * spec.num_heads * (spec.head_dim + spec.value_dim) + hidden * spec.num_heads * spec.value_dim;
  }
  std::int64_t operator()(const GatedMlpSpec& spec) const { return 3 * hidden * spec.num_features; }
  std::int64_t operator()(const PlainMlpSpec& spec) const { return 2 * hidden * spec.num_features; }
  std::int64_t operator()(const MoeSpec& spec) const {
    const std::int64_t features = spec.experts_per_token * spec.num_features + spec.shared_features;
    return hidden * (3 * features + spec.num_experts + (spec.shared_gate ? 1 : 0));
  }
};

struct PairWidth {  // A * D: half the FLOPs of a pair are 2 * this
  Flops operator()(const AttentionSpec& spec) const {
    return static_cast<Flops>(spec.num_heads) * static_cast<Flops>(spec.head_dim);
  }
  Flops operator()(const DeltaNetSpec&) const { return 0; }
  Flops operator()(const LatentAttentionSpec& spec) const {
    return static_cast<Flops>(spec.num_heads) * static_cast<Flops>(spec.head_dim + spec.rope_dim + spec.value_dim) / 2;
  }
};

struct RecurrenceFlops {  // of one token
  Flops operator()(const AttentionSpec&) const { return 0; }
  Flops operator()(const LatentAttentionSpec&) const { return 0; }
  Flops operator()(const DeltaNetSpec& spec) const {
    constexpr Flops c = 64;  // tokens of a chunk
    const auto k = static_cast<Flops>(spec.key_dim), v = static_cast<Flops>(spec.value_dim);
    return 2 * static_cast<Flops>(spec.conv_channels()) * static_cast<Flops>(spec.conv_width) +
           static_cast<Flops>(spec.num_value_heads) * (4 * c * k + c * (k + v) + 2 * c * v + 6 * k * v);
  }
};

Flops num_pairs(std::int64_t tokens, CausalPairs pairs) {
  const auto t = static_cast<Flops>(tokens);
  return pairs == CausalPairs::Visited ? t * (t + 1) / 2 : t * t / 2;
}

}  // namespace

std::int64_t matmul_parameters(const ModelSpec& model, const LayerSpec& layer) {
  return std::visit(MatrixRows{model.hidden_size}, layer.mixer) + std::visit(MatrixRows{model.hidden_size}, layer.ffn);
}

std::int64_t matmul_parameters(const ModelSpec& model) {
  std::int64_t total = model.vocab_size * model.hidden_size;  // the head
  for (const LayerSpec& layer : model.layers) total += matmul_parameters(model, layer);
  return total;
}

Flops attention_core_flops(const LayerSpec& layer, std::int64_t tokens, CausalPairs pairs) {
  return 4 * std::visit(PairWidth(), layer.mixer) * num_pairs(tokens, pairs);
}

Flops layer_flops(const ModelSpec& model, const LayerSpec& layer, std::int64_t tokens, CausalPairs pairs) {
  const auto t = static_cast<Flops>(tokens);
  return t * (2 * static_cast<Flops>(matmul_parameters(model, layer)) + std::visit(RecurrenceFlops(), layer.mixer)) +
         attention_core_flops(layer, tokens, pairs);
}

Flops head_flops(const ModelSpec& model, std::int64_t tokens) {
  return 2 * static_cast<Flops>(tokens) * static_cast<Flops>(model.vocab_size * model.hidden_size);
}

Flops forward_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths, CausalPairs pairs) {
  Flops per_token = 2 * static_cast<Flops>(matmul_parameters(model)), pair_width = 0;
  for (const LayerSpec& layer : model.layers) {
    per_token += std::visit(RecurrenceFlops(), layer.mixer);
    pair_width += std::visit(PairWidth(), layer.mixer);
  }
  Flops total = 0;
  for (const std::int64_t length : sequence_lengths) {
    if (length < 0) throw UsageError(cat("[spec] a sequence of ", length, " tokens; a length is at least 0"));
    total += per_token * static_cast<Flops>(length) + 4 * pair_width * num_pairs(length, pairs);
  }
  return total;
}

Flops training_flops(const ModelSpec& model, std::span<const std::int64_t> sequence_lengths) {
  return 3 * forward_flops(model, sequence_lengths);
}

}  // namespace octavo
