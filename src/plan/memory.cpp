#include "octavo/plan/memory.h"

#include <algorithm>
#include <variant>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "plan/step_memory.h"
#include "plan/step_numbers.h"

namespace octavo {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw UsageError(cat("[plan] ", what, ": octavo has no such block, so there is no peak of its own to foresee"));
}

void add_mixer(LayerSizes& sizes, const AttentionSpec& spec) {
  sizes.num_units = spec.num_kv_heads;
  sizes.group = spec.num_heads / spec.num_kv_heads;
  sizes.head_dim = sizes.key_rows = spec.head_dim;
  sizes.query_rows = sizes.group * spec.head_dim;
  sizes.qk_norm = spec.qk_norm;
  if (!spec.output_gate) return;
  sizes.query_panels = 2;
  sizes.extra_queries = 2;
}

void add_mixer(LayerSizes& sizes, const DeltaNetSpec& spec) {
  constexpr std::int64_t kChunk = 64;  // tokens, of the chunkwise form
  sizes.num_units = spec.num_key_heads;
  sizes.group = spec.num_value_heads / spec.num_key_heads;
  sizes.head_dim = spec.value_dim;
  sizes.key_rows = spec.key_dim;
  sizes.query_rows = sizes.group * spec.value_dim;
  sizes.query_panels = 2;
  // Values before the convolution, gate and gated output; a float32 state [K, V] per chunk, as two rows of 16 bits.
  sizes.extra_queries = 3 + 2 * ((spec.key_dim + kChunk - 1) / kChunk);
  sizes.extra_keys = 2;
  sizes.softmax = false;
}

void add_mixer(LayerSizes&, const LatentAttentionSpec&) {
  refuse("latent attention");
}

void add_ffn(LayerSizes& sizes, const GatedMlpSpec& spec) {
  sizes.num_features = spec.num_features;
}

void add_ffn(LayerSizes&, const PlainMlpSpec&) {
  refuse("an MLP without gate");
}

void add_ffn(LayerSizes& sizes, const MoeSpec& spec) {
  sizes.num_experts = spec.num_experts;
  sizes.experts_per_token = spec.experts_per_token;
  sizes.expert_features = spec.num_features;
  sizes.shared_features = spec.shared_features;
  sizes.num_features = spec.experts_per_token * spec.num_features + spec.shared_features;
}

LayerSizes sizes_of(const LayerSpec& layer) {
  LayerSizes sizes{};
  std::visit([&](const auto& spec) { add_mixer(sizes, spec); }, layer.mixer);
  std::visit([&](const auto& spec) { add_ffn(sizes, spec); }, layer.ffn);
  return sizes;
}

}  // namespace

MemoryModel::MemoryModel(const ModelSpec& model, const TrainingJob& job)
    : job_(job), hidden_(model.hidden_size), vocabulary_(model.vocab_size), tied_(model.tied_embeddings) {
  if (job.sequence_length < 1 || job.batch < 1) {
    throw UsageError(
        cat("[plan] a step of ", job.batch, " sequences of ", job.sequence_length, " tokens; both must be at least 1"));
  }
  for (const LayerSpec& layer : model.layers) {
    const LayerSizes sizes = sizes_of(layer);
    const auto found = std::find(kinds_.begin(), kinds_.end(), sizes);
    kind_of_layer_.push_back(static_cast<int>(found - kinds_.begin()));
    if (found == kinds_.end()) kinds_.push_back(sizes);
  }
}

MemoryEstimate MemoryModel::peak(const StepPlan& plan) const {
  const StepNumbers numbers(*this, plan);
  if (numbers.pipeline > static_cast<int>(kind_of_layer_.size())) {
    throw UsageError(cat("[plan] pipeline=", numbers.pipeline, " over ", kind_of_layer_.size(),
                         " layers; a stage has at least one"));
  }
  MemoryEstimate worst = StepMemory(numbers, 0).run();
  if (numbers.pipeline == 1) return worst;
  const MemoryEstimate last = StepMemory(numbers, numbers.pipeline - 1).run();
  return last.total() > worst.total() ? last : worst;
}

}  // namespace octavo
