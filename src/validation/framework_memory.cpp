#include "octavo/validation/framework_memory.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/interval.h"

namespace octavo {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

/// Parameters of the matrices of a layer: dense, and of all routed experts.
struct LayerParameters {
  double dense = 0, experts = 0;
};

LayerParameters layer_parameters(const LayerSpec& layer, double h) {
  LayerParameters p;
  std::visit(Overloaded{[&](const AttentionSpec& a) {
                          const double q = a.num_heads * a.head_dim, k = a.num_kv_heads * a.head_dim;
                          p.dense += h * (2 * q + 2 * k + (a.output_gate ? q : 0));
                        },
                        [&](const DeltaNetSpec& d) {
                          p.dense += h * (d.conv_channels() + 2 * d.value_width() + 2 * d.num_value_heads);
                        },
                        [&](const LatentAttentionSpec& m) {
                          const double query = m.num_heads * (m.head_dim + m.rope_dim);
                          p.dense += m.query_rank > 0 ? h * m.query_rank + m.query_rank * query : h * query;
                          p.dense +=
                              h * (m.kv_rank + m.rope_dim) + m.kv_rank * m.num_heads * (m.head_dim + m.value_dim);
                          p.dense += m.num_heads * m.value_dim * h;
                        }},
             layer.mixer);
  std::visit(Overloaded{[&](const GatedMlpSpec& f) { p.dense += 3 * h * f.num_features; },
                        [&](const PlainMlpSpec& f) { p.dense += 2 * h * f.num_features; },
                        [&](const MoeSpec& e) {
                          p.dense += h * e.num_experts + 3 * h * e.shared_features;
                          p.experts = 3 * h * e.num_experts * e.num_features;
                        }},
             layer.ffn);
  return p;
}

class FrameworkStep {
 public:
  FrameworkStep(const MemoryRules& rules, const FrameworkRun& run) : r_(rules), run_(run) {
    h_ = static_cast<double>(run.model.hidden_size);
    t_ = run.tensor;
    cut_ = run.cuts_tokens_between_blocks || rules.cuts_tokens_between_blocks ? t_ : 1;
    tokens_ = static_cast<double>(run.micro_batch) * static_cast<double>(run.sequence_length) / run.context / run.fold;
    // A cut vocabulary is filled up to a multiple of the ranks.
    vocabulary_ = std::ceil(static_cast<double>(run.model.vocab_size) / t_) * t_;
    replicas_ = static_cast<double>(run.data) * run.context;
    cut_stages();
  }

  MemoryEstimate stage_static(int stage) const {
    double dense = 0, experts = 0, norms = 0, tables = 0;
    for (int i = begins_[stage]; i < begins_[stage + 1]; ++i) {
      const LayerParameters p = layer_parameters(run_.model.layers[i], h_);
      dense += p.dense / t_;
      experts += p.experts / (t_ * run_.expert);
      norms += 2 * h_;
      tables += r_.tables_per_layer * static_cast<double>(run_.sequence_length) * head_width(i) * 4;
    }
    const bool last = stage + 1 == run_.pipeline;
    if (stage == 0) dense += vocabulary_ * h_ / t_;
    if (last) norms += h_;
    if (last && !(run_.model.tied_embeddings && stage == 0)) dense += vocabulary_ * h_ / t_;
    MemoryEstimate state;
    add_state(state, (dense + norms) / run_.fold, replicas_);
    add_state(state, experts / run_.fold, std::max(1.0, replicas_ / run_.expert));
    double beside = static_cast<double>(r_.fixed) + tables;
    if (run_.zero == 3) beside += std::min(r_.live_parameters, dense + norms + experts) * 2;
    add(state, MemoryPart::Overhead, beside);
    return state;
  }

  MemoryEstimate stage_peak(int stage) const {
    MemoryEstimate base = stage_static(stage);
    base.stage = stage;
    double kept = 0, again = 0, backward = 0, layer_gradients = 0, largest = 0;
    for (int i = begins_[stage]; i < begins_[stage + 1]; ++i) {
      const LayerSpec& layer = run_.model.layers[i];
      kept += kept_bytes(layer);
      if (run_.recompute != RunRecompute::None) again = std::max(again, bytes_of(layer, r_.recomputed, true));
      TokenElements ffn = r_.ffn_backward;
      if (run_.tiles_ffn) ffn.feature = 0;
      backward = std::max({backward, bytes_of(layer, r_.mixer_backward, false), bytes_of(layer, ffn, false)});
      // Experts have few shapes among them, each of its gradients' stand-ins once.
      const LayerParameters p = layer_parameters(layer, h_);
      layer_gradients = std::max(layer_gradients, p.dense / t_ * 2);
      largest = std::max(largest, (p.dense + p.experts / run_.expert) / t_);
    }
    add(base, MemoryPart::Workspace, layer_gradients * r_.layer_gradient_copies);
    const double flying = in_flight(stage);

    MemoryEstimate peak = base;
    peak.place = PeakPlace::FfnBackward;
    add(peak, MemoryPart::Activations, kept * flying);
    add(peak, MemoryPart::Workspace, again + backward);
    if (run_.zero == 3) {
      add(peak, MemoryPart::Communication, largest * (2 * r_.gathered_layers + 4 * r_.travelling_gradients));
    }
    if (stage + 1 != run_.pipeline) return peak;

    MemoryEstimate loss = base;
    loss.place = PeakPlace::Loss;
    add(loss, MemoryPart::Activations, kept);
    const double copies = run_.tiles_loss ? 0 : t_ > 1 ? r_.cut_logits : r_.logits;
    add(loss, MemoryPart::Logits, copies * tokens_ * vocabulary_ / t_ * 2);
    add(loss, MemoryPart::Workspace, r_.head_rows * tokens_ * h_ * 2);
    add(loss, MemoryPart::Workspace, r_.head_gradient_copies * vocabulary_ * h_ / t_ * 2);
    if (run_.zero == 3) {
      const double matrices = run_.model.tied_embeddings ? 1 : 2;
      add(loss, MemoryPart::Communication, r_.gathered_ends * matrices * vocabulary_ * h_ / t_ * 2);
    }
    return loss.total() > peak.total() ? loss : peak;
  }

 private:
  static void add(MemoryEstimate& estimate, MemoryPart part, double bytes) {
    constexpr double kMost = 1e17;  // sums of parts stay far from overflow
    estimate.by_part[static_cast<int>(part)] += static_cast<Bytes>(std::llround(std::min(bytes, kMost)));
  }

  void add_state(MemoryEstimate& state, double parameters, double replicas) const {
    const auto over = [&](int zero) { return run_.zero >= zero ? replicas : 1.0; };
    // Gradients follow the optimizer to the host as they are made.
    const double gradients = run_.offloads_optimizer && run_.zero == 3 ? 0 : r_.gradient;
    if (!run_.offloads_parameters) add(state, MemoryPart::Weights, parameters * r_.weight / over(3));
    add(state, MemoryPart::Gradients, parameters * gradients / over(2));
    if (!run_.offloads_optimizer) add(state, MemoryPart::Optimizer, parameters * r_.optimizer / over(1));
  }

  double head_width(int layer) const {
    const auto* attention = std::get_if<AttentionSpec>(&run_.model.layers[layer].mixer);
    return attention != nullptr ? static_cast<double>(attention->head_dim) : 0;
  }

  /// Units of a layer, times 2 T, and the log-sum-exp.
  double bytes_of(const LayerSpec& layer, const TokenElements& e, bool keeps) const {
    double elements = e.hidden * h_ / cut_ + e.gathered * h_, statistics = 0;
    std::visit(Overloaded{[&](const AttentionSpec& a) {
                            const double q = a.num_heads * a.head_dim, k = a.num_kv_heads * a.head_dim;
                            const double swapped = keeps && run_.context > 1 ? r_.context_query : 0;
                            elements += ((e.query + swapped) * q + e.key * k) / t_;
                            statistics = 4.0 * a.num_heads / t_;
                          },
                          [&](const DeltaNetSpec& d) {
                            elements += (e.query * d.value_width() + e.key * d.conv_channels()) / t_;
                          },
                          [&](const LatentAttentionSpec& m) {
                            // Narrow vectors before and after their norm; queries, keys with the shared rotary part,
                            // what keys and values come from, and the output.
                            const double query = m.num_heads * (m.head_dim + m.rope_dim);
                            const double value = m.num_heads * m.value_dim;
                            if (keeps) {
                              elements += 2 * m.query_rank + 2 * m.kv_rank + m.rope_dim +
                                          (2 * query + m.num_heads * m.head_dim + 2 * value) / t_;
                            } else {
                              elements += (e.query * query + e.key * value) / t_;
                            }
                            statistics = 4.0 * m.num_heads / t_;
                          }},
               layer.mixer);
    std::visit(Overloaded{[&](const GatedMlpSpec& f) { elements += e.feature * f.num_features / t_; },
                          [&](const PlainMlpSpec& f) { elements += e.feature * 2 / 3 * f.num_features / t_; },
                          [&](const MoeSpec& m) {
                            const double features = m.experts_per_token * m.num_features + m.shared_features;
                            elements += e.feature * features / t_;
                            if (keeps) elements += m.experts_per_token * h_ / cut_ + 2.0 * m.num_experts;
                          }},
               layer.ffn);
    return tokens_ * (2 * elements + (keeps && r_.keeps_statistics ? statistics : 0));
  }

  double kept_bytes(const LayerSpec& layer) const {
    switch (run_.recompute) {
      case RunRecompute::None:
        return bytes_of(layer, r_.kept, true);
      case RunRecompute::Selective:
        return bytes_of(layer, r_.kept_selective, true);
      case RunRecompute::Full:
        return run_.offloads_checkpoints ? 0 : tokens_ * 2 * h_ / cut_;
    }
    throw InternalError("[validation] unknown recompute");
  }

  /// Micro-batches whose activations a stage keeps at most.
  double in_flight(int stage) const {
    const double p = run_.pipeline, m = static_cast<double>(run_.micro_batches), v = run_.virtual_stages;
    if (v > 1 && p > 1) return std::min(m * v, 2 * (p - 1 - stage) + (v - 1) * p + 1) / v;
    return std::min(m, p - stage);
  }

  void cut_stages() {
    const auto num_layers = static_cast<std::int64_t>(run_.model.layers.size());
    if (run_.pipeline > num_layers) {
      throw UsageError(cat("[validation] ", run_.pipeline, " pipeline stages over ", num_layers, " layers"));
    }
    if (!r_.balances_stages) {
      for (int s = 0; s < run_.pipeline; ++s) {
        begins_.push_back(static_cast<int>(even_part(num_layers, run_.pipeline, s).begin));
      }
      begins_.push_back(static_cast<int>(num_layers));
      return;
    }
    // A stage takes blocks until their cost, of all stages so far, passes its share.
    double all = vocabulary_ * h_;
    for (const LayerSpec& layer : run_.model.layers) all += layer_parameters(layer, h_).dense;
    double cost = 0;
    begins_ = {0};
    for (int i = 0; i < num_layers; ++i) {
      cost += layer_parameters(run_.model.layers[i], h_).dense;
      const auto stage = static_cast<double>(begins_.size());
      if (cost > all * stage / run_.pipeline && static_cast<int>(begins_.size()) < run_.pipeline) {
        begins_.push_back(i + 1);
      }
    }
    while (static_cast<int>(begins_.size()) <= run_.pipeline) begins_.push_back(static_cast<int>(num_layers));
  }

  const MemoryRules& r_;
  const FrameworkRun& run_;
  double h_, t_, cut_, tokens_, vocabulary_, replicas_;
  std::vector<int> begins_;  // first layer of each stage, and the end
};

}  // namespace

Bytes framework_static_bytes(const MemoryRules& rules, const FrameworkRun& run) {
  return FrameworkStep(rules, run).stage_static(0).total();
}

MemoryEstimate framework_peak(const MemoryRules& rules, const FrameworkRun& run) {
  const FrameworkStep step(rules, run);
  MemoryEstimate worst = step.stage_peak(0);
  for (int stage = 1; stage < run.pipeline; ++stage) {
    const MemoryEstimate peak = step.stage_peak(stage);
    if (peak.total() > worst.total()) worst = peak;
  }
  return worst;
}

}  // namespace octavo
