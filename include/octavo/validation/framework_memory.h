// The most memory of a training step under other frameworks, by rules that say how each keeps state and activations.
// One set of rules per framework, made from what its code allocates; no number of a single run is in them.
//
// Letters
//   T, t     tokens of a micro-batch on a rank; tensor degree
//   h, q, k  hidden size, rows of all queries and of all keys; f: features (of the experts that a token takes, and of
//            the shared one)
//   unit     2 bytes per token: an element in 16 bits
//
// A stage's peak is its state, what runs beside it, and the worst of two places:
//   backward of a layer   activations in flight; under recompute the layer again; what its backward adds;
//                         under ZeRO 3 gathered layers and their gradients
//   loss                  (last stage) activations of one micro-batch; copies of the logits, T V / t units each; rows
//                         of the hidden size; under ZeRO 3 the gathered embedding and head
// A layer keeps 2 h of its dispatched tokens per chosen expert beside what an MLP does, and latent attention its narrow
// vectors, keys and values as they are put together: see kept_elements() in framework_memory.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "octavo/plan/memory_estimate.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// Units per token of one layer: multiples of h, q, k and f.
struct TokenElements {
  double hidden = 0;    // over t where the framework cuts tokens between blocks (sequence parallelism)
  double gathered = 0;  // of h, never over t: inputs that are kept as gathered
  double query = 0, key = 0, feature = 0;  // over t
};

struct MemoryRules {
  std::string name;
  // State, bytes per parameter. ZeRO 1 cuts the optimizer's, 2 gradients too, 3 weights too, over data and context
  // ranks.
  double weight = 2, gradient = 4, optimizer = 12;
  TokenElements kept = {}, kept_selective = {};          // without recompute, and with the framework's "selective"
  TokenElements recomputed = {};                         // of a layer whose forward runs again
  TokenElements mixer_backward = {}, ffn_backward = {};  // what a backward adds, at its worst moment
  bool keeps_statistics = true;                          // float32 log-sum-exp per query head
  double context_query = 0;                              // q kept once more where context ranks swap tokens for heads
  double logits = 1, cut_logits = 1;                     // copies of the logits, in units; the second where t > 1
  double head_rows = 0;                                  // multiples of h per token of the tensor group, at the loss
  double layer_gradient_copies = 0;  // of one layer's matrices, in 2 bytes: gradients that are only stand-ins
  double head_gradient_copies = 0;   // of the head's matrix, likewise
  double gathered_layers = 0, travelling_gradients = 0;  // under ZeRO 3; gradients in 4 bytes
  double gathered_ends = 0;                 // under ZeRO 3: whether embedding and head are whole at the loss
  double live_parameters = 0;               // under ZeRO 3: parameters that may be whole, all the time
  bool cuts_tokens_between_blocks = false;  // always, where t > 1; else where the run says so
  bool balances_stages = false;             // layers go to stages by their cost, the head's included; else evenly
  double tables_per_layer = 0;              // float32 [sequence, head width]
  Bytes fixed = 0;                          // beside tensors of the model
  double reserved = 1;                      // what the allocator reserves over what is allocated
};

const MemoryRules& megatron_rules();    // Megatron-LM with TransformerEngine: fused norms, SwiGLU, attention and loss
const MemoryRules& torchtitan_rules();  // FSDP2, float32 shards
const MemoryRules& nanotron_rules();    // unfused norms, rotary embedding and loss
const MemoryRules& deepspeed_rules();   // ZeRO under Hugging Face models
const MemoryRules& alst_rules();        // the same with Arctic's long-sequence parts (arXiv 2506.13996)
const MemoryRules& folding_rules();     // the folding paper's runs (arXiv 2604.26294): a layer's input kept

enum class RunRecompute { None, Selective, Full };

/// A run of a framework.
struct FrameworkRun {
  ModelSpec model;
  int tensor = 1, pipeline = 1, context = 1, expert = 1, data = 1, fold = 1;
  int virtual_stages = 1;
  int zero = 0;
  std::int64_t sequence_length = 0, micro_batch = 1, micro_batches = 1;
  bool cuts_tokens_between_blocks = false;  // sequence parallelism
  RunRecompute recompute = RunRecompute::None;
  bool offloads_optimizer = false, offloads_parameters = false, offloads_checkpoints = false;
  bool tiles_loss = false, tiles_ffn = false;
};

/// Weights, gradients and optimizer state of the first stage's ranks, and what the rules count beside.
Bytes framework_static_bytes(const MemoryRules& rules, const FrameworkRun& run);

/// Allocated bytes of the rank that has most. Throws UsageError for a stage without layers.
MemoryEstimate framework_peak(const MemoryRules& rules, const FrameworkRun& run);

}  // namespace octavo
