#include "octavo/plan/memory.h"

#include <algorithm>
#include <variant>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "plan/step_memory.h"
#include "plan/step_numbers.h"

namespace octavo {
namespace {

LayerSizes sizes_of(const LayerSpec& layer) {
  const auto& attention = std::get<AttentionSpec>(layer.mixer);
  return {attention.num_heads, attention.num_kv_heads, attention.head_dim,
          std::get<GatedMlpSpec>(layer.ffn).num_features, attention.qk_norm};
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
