// Where each number comes from.
#include "octavo/validation/framework_memory.h"

namespace octavo {

namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

}  // namespace

const MemoryRules& megatron_rules() {
  // Kept: arXiv 2205.05198 without dropout and GELU (plan/activations.h). The loss works in place on its 16-bit logits.
  // With fused accumulation, autograd is still given a gradient of each weight: TransformerEngine keeps one of each
  // shape, Megatron's head makes one per call.
  static const MemoryRules rules{
      .name = "Megatron-LM",
      .kept = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .kept_selective = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .recomputed = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .mixer_backward = {.hidden = 2, .query = 2, .key = 2},
      .ffn_backward = {.hidden = 1, .feature = 2},
      .context_query = 1,
      .head_rows = 4,
      .layer_gradient_copies = 1,
      .head_gradient_copies = 1,
  };
  return rules;
}

const MemoryRules& torchtitan_rules() {
  // float32 shards of weights, gradients and two moments. "selective" keeps every second product (queries, values,
  // gate, down) and attention's output. Loss: 16-bit logits, and in float32 the cast, the log-softmax and its gradient;
  // a vocabulary cut over ranks makes one copy more.
  static const MemoryRules rules{
      .name = "torchtitan",
      .weight = 4,
      .gradient = 4,
      .optimizer = 8,
      .kept = {.hidden = 8, .query = 3, .key = 3, .feature = 4},
      .kept_selective = {.hidden = 2, .query = 2, .key = 1, .feature = 1},
      .recomputed = {.hidden = 8, .query = 3, .key = 3, .feature = 4},
      .mixer_backward = {.hidden = 3, .query = 2, .key = 2},
      .ffn_backward = {.hidden = 2, .feature = 3},
      .logits = 7,
      .cut_logits = 9,
      .head_rows = 2,
      .gathered_layers = 2,
      .travelling_gradients = 2,
      .gathered_ends = 1,
      .cuts_tokens_between_blocks = true,
      .reserved = 1.05,
  };
  return rules;
}

const MemoryRules& nanotron_rules() {
  // The inputs of column-parallel products are kept as gathered; queries before and after the rotary embedding and in
  // keys and values put together; gate, up, silu and product apart. The loss has two copies in float32.
  static const MemoryRules rules{
      .name = "nanotron",
      .kept = {.hidden = 2, .gathered = 2, .query = 3, .key = 4, .feature = 4},
      .kept_selective = {.hidden = 2, .gathered = 2, .query = 3, .key = 4, .feature = 4},
      .recomputed = {.hidden = 2, .gathered = 2, .query = 3, .key = 4, .feature = 4},
      .mixer_backward = {.hidden = 1, .query = 2, .key = 2},
      .ffn_backward = {.hidden = 1, .feature = 2},
      .logits = 4,
      .cut_logits = 4,
      .head_rows = 1,
      .balances_stages = true,
      .tables_per_layer = 2,
      .fixed = 62 * kMiB,
  };
  return rules;
}

namespace {

/// Hugging Face's Llama: norms in float32, logits cast to float32 for the loss.
MemoryRules hugging_face_rules(std::string name) {
  return {
      .name = std::move(name),
      .gradient = 2,
      .kept = {.hidden = 4, .query = 3, .key = 3, .feature = 4},
      .kept_selective = {.hidden = 4, .query = 3, .key = 3, .feature = 4},
      .recomputed = {.hidden = 8, .query = 4, .key = 5},
      .mixer_backward = {.hidden = 4, .query = 1, .key = 3},
      .ffn_backward = {.feature = 5},
      .logits = 7,
      .cut_logits = 7,
      .live_parameters = 1e9,  // stage3_max_live_parameters
  };
}

}  // namespace

const MemoryRules& deepspeed_rules() {
  static const MemoryRules rules = hugging_face_rules("DeepSpeed");
  return rules;
}

const MemoryRules& alst_rules() {
  static const MemoryRules rules = [] {
    MemoryRules alst = hugging_face_rules("ALST");
    alst.gradient = 4;
    alst.fixed = 5'000'000'000;  // a GPU's capacity holds the runtime, libraries and the allocator's gaps too
    return alst;
  }();
  return rules;
}

const MemoryRules& folding_rules() {
  // folding.md 8: lines through the bars fall as 24 bytes per parameter over t: 16-bit weights and gradients, float32
  // sums, masters and moments, and the optimizer's temporary.
  static const MemoryRules rules{
      .name = "folding paper",
      .weight = 2,
      .gradient = 6,
      .optimizer = 16,
      .kept = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .kept_selective = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .recomputed = {.hidden = 4, .query = 2, .key = 2, .feature = 3},
      .fixed = 3'000'000'000,
  };
  return rules;
}

}  // namespace octavo
