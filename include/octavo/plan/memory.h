// The most memory that any rank has in use during a training step, from sizes alone: what the dry run (dryrun/) finds
// by running the step on meta tensors, in microseconds. tests/dryrun/memory_model_test.cpp holds one against the other.
//
// The step is followed in its order, and every tensor that the engine makes is booked where it makes it: the blocks of
// blocks/, taken in steps by the drivers and flows of parallel/, under each stash policy. All layers of one kind are
// alike, so only the last ones are followed; of the others what they keep is counted. What is left out is smaller than
// a row of the hidden size, and the filling-up of gradient buckets. Ranks share memory, as threads do: what is lent is
// read where it lies; where it travels, its copies come on top (`octavo dryrun --backend gloo` counts them).
//
// Letters
//   h, V         hidden size, rows of the vocabulary
//   q, n         rows of the queries and of the keys of one KV head; a: query heads; f: features
//   N            tokens that a block is applied to; T: tokens held between blocks. N = T but where they are gathered:
//                under tensor:scatter and where tokens come to folded weights
//   e, g         bytes of an element of the compute type, and of a gradient sum
//
// What one layer keeps per token, in elements, beside its two inputs (2 h), for units computed here:
//   recompute    nothing
//   keep         attention: normed input h (of T), queries, keys, values and output 2 (q + n); MLP: normed input h,
//                gate, up and product 3 f. With q_norm and k_norm the projection too, q + 2 n
//   named        attention: output q; qkv: q + 2 n; gate_up: 2 f
// and in float32 the log-sum-exp per query head (keep, attention), and a number per norm (keep).
// Blocks that the engine has not got yet, under keep and in the same style: a gate on attention's output keeps it and
// the gated output, 2 q more; a delta net (q: rows of the values of a key head, n: of the key) keeps what its
// convolution reads, its gate, the gated output and a float32 state per chunk of 64 tokens; experts keep the rows of
// their tokens (h per expert that a token takes), 3 f, and the router's choice.
//
// Axes that the engine has not got yet are counted as the design says they will be:
//   pipeline     a stage has its layers; before it takes a micro-batch backward it keeps as many as its schedule has in
//                flight. Worst are the first stage (most in flight) or the last (the head)
//   sequence     tokens are cut over the axis and weights are not. gather: keys and values of the heads of a step of
//                all ranks, twice while they are put in order; ring: those of two ranks; ulysses: queries, keys, values
//                and output a second time, of fewer heads and all tokens; auto: ulysses where it divides the KV heads,
//                else gather
//   expert       its ranks have sequences of their own and 1/R of the experts; tokens travel to them and back, and each
//                rank receives as many as it sends
//   data:zero3   weights and gradients are 1/R between their turns; one layer is gathered, the next comes; in backward
//                a layer's gradients are added up while those of the one before travel. R: ranks of data, expert and
//                sequence
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/plan/job.h"
#include "octavo/plan/memory_estimate.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// Layers that are alike. A delta net's units are its key heads, its queries' place is taken by values.
struct LayerSizes {
  std::int64_t num_units, group, head_dim;         // KV heads; query heads of each; width of the statistics' heads
  std::int64_t query_rows, key_rows;               // of a unit
  std::int64_t query_panels = 1;                   // of the projection: queries, and gates beside them
  std::int64_t extra_queries = 0, extra_keys = 0;  // what is kept beside projection and output, in their rows
  bool qk_norm = false, softmax = true;            // softmax: keys and values meet all tokens
  std::int64_t num_features = 0;                   // of the MLP, or of all experts that a token takes
  std::int64_t num_experts = 0, experts_per_token = 0, expert_features = 0, shared_features = 0;  // 0 experts: an MLP
  bool operator==(const LayerSizes&) const = default;
};

class MemoryModel {
 public:
  /// What a plan does not change. Throws UsageError for a length or batch below 1, and for latent attention and MLPs
  /// without gate, which no config gives.
  MemoryModel(const ModelSpec& model, const TrainingJob& job);

  /// On the rank that has most. Local, about a microsecond. Throws UsageError for a micro-batch below 1, more pipeline
  /// stages than layers, and a tensor degree that does not divide a block's units under `refuse`.
  MemoryEstimate peak(const StepPlan& plan) const;

  const TrainingJob& job() const { return job_; }
  std::int64_t hidden_size() const { return hidden_; }
  std::int64_t vocab_size() const { return vocabulary_; }
  bool tied_embeddings() const { return tied_; }
  const std::vector<LayerSizes>& kinds() const { return kinds_; }
  const std::vector<int>& kind_of_layer() const { return kind_of_layer_; }

 private:
  TrainingJob job_;
  std::int64_t hidden_ = 0, vocabulary_ = 0;
  bool tied_ = false;
  std::vector<LayerSizes> kinds_;
  std::vector<int> kind_of_layer_;  // index into kinds_
};

}  // namespace octavo
