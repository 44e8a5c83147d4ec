#include "plan/step_memory.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/layout/interval.h"

namespace octavo {

using enum MemoryPart;

namespace {

// blocks/vocabulary.h, Head::Options
constexpr Bytes kLogitBytes = 64 << 20;
constexpr std::int64_t kFewestTokens = 256;

}  // namespace

MemoryEstimate StepMemory::run() {
  const auto num_layers = static_cast<std::int64_t>(n_.model.kind_of_layer().size());
  const Interval layers = even_part(num_layers, n_.pipeline, stage_);
  first_layer_ = static_cast<int>(layers.begin);
  end_layer_ = static_cast<int>(layers.end);
  take_state();
  take_other_micro_batches();
  take_batch();
  if (stage_ == 0) {
    embed();
  } else {
    meter_.take(Activations, between());  // received
  }
  run_layers_forward();
  if (stage_ + 1 == n_.pipeline) {
    loss();
  } else {
    meter_.take(Workspace, between());  // the gradient that is received, where the output was
    meter_.give(Activations, between());
    meter_.take(Activations, between());
  }
  run_layers_backward();
  if (stage_ == 0) embed_backward();
  sum_partial_gradients();
  MemoryEstimate peak = meter_.peak();
  peak.stage = stage_;
  return peak;
}

void StepMemory::take_state() {
  const std::int64_t hidden = n_.model.hidden_size();
  const std::int64_t matrix = (n_.rows + n_.fold - 1) / n_.fold * hidden;
  const bool first = stage_ == 0, last = stage_ + 1 == n_.pipeline;
  std::int64_t elements = first ? matrix : 0, experts = 0;
  if (last) elements += hidden + (n_.model.tied_embeddings() && first ? 0 : matrix);
  for (int kind = 0; kind < static_cast<int>(n_.model.kinds().size()); ++kind) {
    const auto begin = n_.model.kind_of_layer().begin();
    const std::int64_t count = std::count(begin + first_layer_, begin + end_layer_, kind);
    if (count == 0) continue;
    const LayerNumbers& layer = n_.layers[kind];
    elements += count * (layer.mixer_elements + layer.ffn_elements);
    experts += count * layer.expert_elements;
  }
  const std::int64_t alike = std::max<std::int64_t>(1, n_.zero_ranks / n_.expert);  // ranks with the same experts
  const std::int64_t shard = (elements + n_.zero_ranks - 1) / n_.zero_ranks + (experts + alike - 1) / alike;
  const std::int64_t stored = n_.plan.layout.zero == ZeroStage::Weights ? shard : elements + experts;
  meter_.take(Weights, stored * n_.element);
  meter_.take(Gradients, stored * n_.sum);
  meter_.take(Optimizer, shard * n_.sum * num_optimizer_tensors(n_.model.job().compute));
}

std::int64_t StepMemory::in_flight() const {
  const std::int64_t m = n_.micro_batches, ranks = n_.pipeline, behind = ranks - stage_;
  switch (n_.plan.layout.pipeline_form) {
    case PipelineForm::OneForwardOneBackward:
    case PipelineForm::ZeroBubble:
    case PipelineForm::Interleaved:
      return std::min(m, behind);
    case PipelineForm::AllForward:
      return ranks == 1 ? 1 : m;
  }
  throw InternalError("[plan] unknown pipeline form");
}

/// What a micro-batch keeps beside what its layers do.
Bytes StepMemory::batch_bytes() const {
  return 2 * 8 * n_.sequences * n_.model.job().sequence_length;
}

void StepMemory::take_other_micro_batches() {
  if (n_.pipeline == 1) return;
  const Bytes one = kept_by(first_layer_, end_layer_) + between();
  Bytes others = (in_flight() - 1) * one;
  const std::int64_t parts = n_.plan.layout.virtual_stages;
  if (n_.plan.layout.pipeline_form == PipelineForm::Interleaved) {
    // In parts of the model: 2 (P-1-s) + (V-1) P ahead of the first backward, and the one at work.
    const std::int64_t ranks = n_.pipeline;
    const std::int64_t ahead = std::min(n_.micro_batches * parts, 2 * (ranks - 1 - stage_) + (parts - 1) * ranks + 1);
    others = std::max<Bytes>(0, ahead - parts) * one / parts;
  }
  if (n_.plan.layout.pipeline_form == PipelineForm::ZeroBubble) {
    // Gradients whose products wait for the bubble: of one micro-batch per stage before this one.
    for (int i = first_layer_; i < end_layer_; ++i) {
      const LayerNumbers& layer = n_.layers[n_.model.kind_of_layer()[i]];
      const std::int64_t rows = layer.kv_heads * (layer.query_rows + 2 * layer.key_rows) + 2 * layer.features;
      others += stage_ * n_.held * (rows + 2 * n_.model.hidden_size()) * n_.element;
    }
  }
  meter_.take(Activations, others);
  meter_.take(Data, (in_flight() - 1) * batch_bytes());
}

void StepMemory::take_batch() {
  meter_.take(Data, batch_bytes());
}

Bytes StepMemory::kept_by(int first_layer, int end_layer) {
  Bytes kept = 0;
  for (int kind = 0; kind < static_cast<int>(n_.model.kinds().size()); ++kind) {
    const auto begin = n_.model.kind_of_layer().begin();
    const std::int64_t count = std::count(begin + first_layer, begin + end_layer, kind);
    if (count == 0) continue;
    StepMemory alone(n_, stage_);
    alone.forward(n_.model.kinds()[kind], n_.layers[kind]);
    kept += count * alone.meter_.live();
  }
  return kept;
}

void StepMemory::forward(const LayerSizes& sizes, const LayerNumbers& layer) {
  attention_forward(sizes, layer);
  mlp_forward(sizes, layer);
}

void StepMemory::run_layers_forward() {
  const std::vector<int>& kinds = n_.model.kind_of_layer();
  if (first_layer_ == end_layer_) return;
  // Each kind's last layer is followed, and what lies behind it.
  first_followed_ = end_layer_ - 1;
  for (int kind = 0; kind < static_cast<int>(n_.model.kinds().size()) && n_.model.kinds().size() > 1; ++kind) {
    for (int i = end_layer_ - 1; i >= first_layer_; --i) {
      if (kinds[i] != kind) continue;
      first_followed_ = std::min(first_followed_, i);
      break;
    }
  }
  const LayerNumbers& last = n_.layers[kinds[end_layer_ - 1]];
  // Tables of the rotary embedding: cosines and sines.
  const bool any_held = !last.mixer_forward.brings_tokens || !last.mixer_backward.brings_tokens;
  const bool any_folded = last.mixer_forward.brings_tokens || last.mixer_backward.brings_tokens;
  const Bytes per_position = n_.model.kinds()[kinds[end_layer_ - 1]].head_dim * n_.statistic;
  meter_.take(Activations, ((any_held ? n_.held : 0) + (any_folded ? n_.folded : 0)) * per_position);
  gather_weights(2 * largest_layer());
  kept_ = kept_by(first_layer_, first_followed_);
  meter_.take(Activations, kept_);
  for (int i = first_followed_; i < end_layer_; ++i) {
    forward(n_.model.kinds()[kinds[i]], n_.layers[kinds[i]]);
  }
}

void StepMemory::backward(const LayerSizes& sizes, const LayerNumbers& layer) {
  mlp_backward(sizes, layer);
  if (n_.fold == 1) return attention_backward(sizes, layer, true);
  // Which of the steps are a rank's own differs; the worst counts.
  StepMemory other = *this;
  attention_backward(sizes, layer, true);
  other.attention_backward(sizes, layer, false);
  if (other.meter_.peak().total() <= meter_.peak().total()) return;
  meter_ = other.meter_;
  sent_now_ = other.sent_now_;
  sent_before_ = other.sent_before_;
}

void StepMemory::run_layers_backward() {
  const std::vector<int>& kinds = n_.model.kind_of_layer();
  if (first_layer_ == end_layer_) return;
  gather_weights(2 * largest_layer());
  // The gradients of a layer, and those of the one before on their way to their shards.
  const Bytes travelling = n_.plan.layout.zero == ZeroStage::Weights ? 2 * largest_layer() * n_.sum : 0;
  meter_.take(Communication, travelling);
  for (int i = end_layer_ - 1; i >= first_followed_; --i) {
    backward(n_.model.kinds()[kinds[i]], n_.layers[kinds[i]]);
  }
  meter_.give(Communication, travelling);
  meter_.give(Activations, kept_);
}

std::int64_t StepMemory::largest_layer() const {
  if (n_.plan.layout.zero != ZeroStage::Weights) return 0;
  std::int64_t most = 0;
  for (const LayerNumbers& layer : n_.layers) {
    most = std::max(most, layer.mixer_elements + layer.ffn_elements + layer.expert_elements);
  }
  return most;
}

/// Under ZeRO 3 those that are whole here from now on.
void StepMemory::gather_weights(std::int64_t elements) {
  if (n_.plan.layout.zero != ZeroStage::Weights) return;
  meter_.give(Communication, gathered_weights_);
  gathered_weights_ = elements * n_.element;
  meter_.take(Communication, gathered_weights_);
}

void StepMemory::embed() {
  meter_.enter(PeakPlace::Embedding);
  gather_weights(n_.rows * n_.model.hidden_size() / n_.fold + largest_layer());
  const BlockPass& pass = n_.embedding_forward;
  const bool cuts = n_.fold * n_.sequence > 1;
  const Bytes ids = cuts ? pass.tokens * 8 : 0, rows = n_.activation(pass.tokens);
  meter_.take(Data, ids);
  meter_.take(Workspace, rows);
  if (pass.folds) meter_.touch(Workspace, rows);
  sum(pass, false);
  meter_.give(Workspace, between());
  meter_.take(Activations, between());
  meter_.give(Data, ids);
}

void StepMemory::embed_backward() {
  meter_.enter(PeakPlace::EmbeddingBackward);
  const std::int64_t elements = (n_.rows + n_.fold - 1) / n_.fold * n_.model.hidden_size();
  gather_weights(0);
  const Bytes whole = n_.plan.layout.zero == ZeroStage::Weights ? elements * n_.sum : 0;
  meter_.touch(Communication, whole);
  const BlockPass& pass = n_.embedding_backward;
  const Bytes ids = n_.fold * n_.sequence > 1 ? pass.tokens * 8 : 0;
  meter_.take(Data, ids);
  const Bytes gathered = gather(pass, false, Workspace);
  for (int i = 0; pass.folds && i < n_.fold; ++i) {
    begin_returns();
    if (i + 1 == n_.fold) continue;
    meter_.take(Communication, elements * n_.sum);
    send(elements);
  }
  meter_.give(Workspace, gathered);
  meter_.give(Data, ids);
}

void StepMemory::loss() {
  meter_.enter(PeakPlace::Loss);
  const std::int64_t elements = n_.rows * n_.model.hidden_size() / n_.fold;
  gather_weights(elements + largest_layer());
  const Bytes whole = n_.plan.layout.zero == ZeroStage::Weights ? elements * n_.sum : 0;
  meter_.take(Communication, whole);
  const BlockPass& pass = n_.head;
  const Bytes labels = n_.fold * n_.sequence > 1 ? pass.tokens * 8 : 0;
  meter_.take(Data, labels);
  meter_.take(Workspace, between() + statistics());
  const Bytes gathered = gather(pass, false, Workspace);
  meter_.take(Workspace, n_.activation(pass.tokens));  // the gradient of the normed input
  const std::int64_t rows = pass.units_of(0);
  const std::int64_t chunk = std::min(pass.tokens, std::max(kFewestTokens, kLogitBytes / (rows * n_.element)));
  if (pass.steps == 1) {
    loss_in_one_step(chunk * rows * n_.element, chunk);
  } else {
    loss_by_steps(chunk * rows * n_.element);
  }
  sum(pass, false);
  meter_.take(Workspace, between());  // that of the residual stream
  meter_.give(Workspace, between());
  meter_.give(Workspace, gathered + between() + statistics());
  meter_.give(Data, labels);
  meter_.give(Communication, whole);
}

void StepMemory::loss_in_one_step(Bytes chunk, std::int64_t chunk_tokens) {
  const Bytes merge = 2 * chunk_tokens * n_.statistic;  // log-sum-exp and picked logit
  const std::int64_t ranks = std::max(n_.tensor > 1 ? n_.tensor : 0, n_.head.brings_tokens ? n_.fold : 0);
  meter_.take(Logits, chunk + merge);
  meter_.touch(Communication, ranks * merge);
  add_product(n_.head.units * n_.model.hidden_size(), false);
  meter_.give(Logits, chunk + merge);
}

void StepMemory::loss_by_steps(Bytes chunk) {
  const Bytes merge = 2 * n_.head.tokens * n_.statistic;
  meter_.take(Logits, merge);
  meter_.touch(Logits, chunk);
  if (n_.tensor > 1) meter_.touch(Communication, n_.tensor * merge);
  for (std::int64_t i = 0; i < n_.head.steps; ++i) {
    const std::int64_t elements = n_.head.units_of(i) * n_.model.hidden_size();
    const bool sends = i + 1 < n_.head.steps;
    meter_.take(Logits, chunk);
    begin_returns();
    add_product(elements, sends);
    meter_.give(Logits, chunk);
    if (sends) send(elements);
  }
  meter_.give(Logits, merge);
}

void StepMemory::sum_partial_gradients() {
  meter_.enter(PeakPlace::GradientSums);
  std::int64_t elements = 0;
  for (int i = first_layer_; i < end_layer_; ++i) {
    elements += n_.layers[n_.model.kind_of_layer()[i]].shared_elements;
  }
  meter_.touch(Workspace, elements * n_.sum);
}

}  // namespace octavo
