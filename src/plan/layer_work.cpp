#include "plan/layer_work.h"

#include "octavo/spec/flops.h"

namespace octavo {
namespace {

using Cut = MatmulShape::Cut;

struct MixerWork {
  double hidden;
  LayerWork& work;

  void operator()(const AttentionSpec& spec) const {
    const auto queries = static_cast<double>(spec.num_heads * spec.head_dim);
    const auto keys = static_cast<double>(2 * spec.num_kv_heads * spec.head_dim);
    const double gates = spec.output_gate ? queries : 0;
    work.mixer = {{hidden, queries + gates + keys, keys, Cut::Out}, {queries, hidden, 0, Cut::In}};
    work.mixer_units = static_cast<double>(spec.num_kv_heads);
    work.parts_per_unit = static_cast<double>(spec.num_heads / spec.num_kv_heads);
    work.query_width = queries;
    work.key_width = keys;
  }
  void operator()(const DeltaNetSpec& spec) const {
    const auto channels = static_cast<double>(spec.conv_channels());
    const auto values = static_cast<double>(spec.value_width());
    const double rows = channels + values + 2 * static_cast<double>(spec.num_value_heads);
    work.mixer = {{hidden, rows, 0, Cut::Out}, {values, hidden, 0, Cut::In}};
    work.mixer_units = static_cast<double>(spec.num_key_heads);
    work.query_width = channels;
    work.is_recurrent = true;
    work.state_bytes = 4 * static_cast<double>(spec.num_value_heads * spec.key_dim * (spec.key_dim + spec.value_dim));
  }
  void operator()(const LatentAttentionSpec& spec) const {
    const auto heads = static_cast<double>(spec.num_heads);
    const auto rope = static_cast<double>(spec.rope_dim), rank = static_cast<double>(spec.kv_rank);
    const double queries = heads * (static_cast<double>(spec.head_dim) + rope);
    const double keys = heads * static_cast<double>(spec.head_dim + spec.value_dim);
    const double values = heads * static_cast<double>(spec.value_dim);
    const auto narrow = static_cast<double>(spec.query_rank);
    if (narrow > 0) work.mixer.push_back({hidden, narrow, 0, Cut::Nothing});
    work.mixer.push_back({narrow > 0 ? narrow : hidden, queries, 0, Cut::Out});
    work.mixer.push_back({hidden, rank + rope, 0, Cut::Nothing});
    work.mixer.push_back({rank, keys, 0, Cut::Out});
    work.mixer.push_back({values, hidden, 0, Cut::In});
    work.mixer_units = heads;
    work.query_width = queries;
    work.key_width = queries + values;
  }
};

struct FfnWork {
  double hidden;
  LayerWork& work;

  void dense(double features, double gates) const {
    work.ffn.push_back({hidden, gates * features, 0, Cut::Out});
    work.ffn.push_back({features, hidden, 0, Cut::In});
    work.dense_units = features;
    work.dense_features += gates * features;
  }
  void operator()(const GatedMlpSpec& spec) const { dense(static_cast<double>(spec.num_features), 2); }
  void operator()(const PlainMlpSpec& spec) const { dense(static_cast<double>(spec.num_features), 1); }
  void operator()(const MoeSpec& spec) const {
    const auto features = static_cast<double>(spec.num_features);
    work.num_experts = static_cast<double>(spec.num_experts);
    work.experts_per_token = static_cast<double>(spec.experts_per_token);
    work.expert_in = {hidden, 2 * features, 0, Cut::Nothing};
    work.expert_out = {features, hidden, 0, Cut::Nothing};
    work.routed_features = 2 * features * work.experts_per_token;
    work.expert_elements = 3 * hidden * features * work.num_experts;
    work.ffn.push_back({hidden, work.num_experts, 0, Cut::Nothing});
    if (spec.shared_features > 0) dense(static_cast<double>(spec.shared_features), 2);
  }
};

double elements(const std::vector<MatmulShape>& matmuls) {
  double sum = 0;
  for (const MatmulShape& matmul : matmuls) sum += matmul.in * matmul.out;
  return sum;
}

}  // namespace

LayerWork layer_work(const ModelSpec& model, const LayerSpec& layer, std::int64_t sequence_length) {
  LayerWork work;
  const auto hidden = static_cast<double>(model.hidden_size);
  std::visit(MixerWork{hidden, work}, layer.mixer);
  std::visit(FfnWork{hidden, work}, layer.ffn);
  work.mixer_core = layer_flops(model, layer, sequence_length) -
                    2 * static_cast<double>(matmul_parameters(model, layer)) * static_cast<double>(sequence_length);
  work.mixer_elements = elements(work.mixer);
  work.ffn_elements = elements(work.ffn) + work.expert_elements;
  return work;
}

bool LayerWork::operator==(const LayerWork& other) const {
  return mixer_elements == other.mixer_elements && ffn_elements == other.ffn_elements &&
         mixer_core == other.mixer_core && mixer_units == other.mixer_units && dense_features == other.dense_features &&
         routed_features == other.routed_features && num_experts == other.num_experts &&
         experts_per_token == other.experts_per_token && query_width == other.query_width &&
         key_width == other.key_width && is_recurrent == other.is_recurrent;
}

}  // namespace octavo
