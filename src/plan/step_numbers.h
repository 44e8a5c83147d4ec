// What a plan makes of a model's sizes: who holds how many units and tokens, and in which steps they are taken.
// Letters as in plan/memory.h.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/plan/memory.h"

namespace octavo {

/// A pass over a block.
struct BlockPass {
  bool brings_tokens = false;  // tokens come to folded weights
  bool folds = false;          // folded weights come to the tokens
  std::int64_t tokens = 0;     // N
  std::int64_t units = 0;      // computed here in this pass
  std::int64_t steps = 1;
  bool owns_steps = true;  // where weights come: whether each step's rows are stored by one rank

  /// Of step `step`; early steps are the larger.
  std::int64_t units_of(std::int64_t step) const { return units / steps + (step < units % steps ? 1 : 0); }
};

/// A layer as one rank of the tensor axis has it.
struct LayerNumbers {
  std::int64_t query_rows, key_rows;          // q and n, of one KV head here
  std::int64_t panel_rows;                    // of a KV head, of the projection
  std::int64_t kv_heads, features;            // computed here, over the fold axis
  std::int64_t mixer_elements, ffn_elements;  // of the matrices and norms, as they are stored here
  std::int64_t expert_elements;               // of the experts, likewise
  std::int64_t expert_step;                   // of one matrix of an expert; 0 for an MLP
  std::int64_t shared_elements;               // of them what neighbours of the tensor axis hold alike, in parts
  BlockPass mixer_forward, mixer_backward, ffn_forward, ffn_backward;
};

struct StepNumbers {
  /// Throws as MemoryModel::peak().
  StepNumbers(const MemoryModel& model, const StepPlan& plan);

  const MemoryModel& model;
  const StepPlan& plan;
  int data, tensor, fold, sequence, pipeline, expert;
  std::int64_t zero_ranks;  // R
  bool scatters, narrow;    // narrow: sums are wider than the compute type
  bool keeps_graph, keeps_attention, keeps_projection, keeps_gate_up;
  SequenceForm sequence_form;  // never Auto
  Bytes element, sum, statistic, operand;

  std::int64_t micro_batches;  // of a rank and step
  std::int64_t sequences;      // of the first
  std::int64_t positions;      // of it, those of no token included
  std::int64_t folded;         // of them, those of one rank of the sequence axis: over the fold axis
  std::int64_t held;           // those of one rank of the fold axis
  std::int64_t between;        // T
  std::int64_t rows;           // of the vocabulary, over the fold axis
  BlockPass embedding_forward, embedding_backward, head;
  std::vector<LayerNumbers> layers;  // of each kind

  Bytes activation(std::int64_t tokens) const { return tokens * model.hidden_size() * element; }

 private:
  LayerNumbers layer(const LayerSizes& sizes) const;
  struct Share {
    std::int64_t units, replicas = 1;
    bool splits_parts = false;
  };
  Share share(std::int64_t units, std::int64_t parts, const char* what) const;
  BlockPass pass(bool brings_tokens, std::int64_t units) const;
  std::int64_t local_steps(std::int64_t wanted, std::int64_t most) const;
};

}  // namespace octavo
