// What a transformer layer keeps from forward for its backward, as published: the GPT layer of Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), and the same account for a Llama
// layer. For frameworks as they are in these papers; what octavo itself keeps is plan/memory.h.
//
// Letters: s tokens of a sequence, b sequences, h hidden size, a heads, L layers, V vocabulary rows, t tensor degree,
// p pipeline stages, m parts of the model per stage. Values are 2 bytes, dropout masks 1.
#pragma once

#include <cstdint>

namespace octavo {

struct GptSizes {
  double s, b, h, a, layers, vocabulary = 51200;
};

/// Terms of one layer, in units of s b h bytes; those of the scores in units of a s^2 b.
struct GptLayerTerms {
  double qkv_input = 2, query_key = 4, value = 2, output_input = 2, attention_mask = 1;
  double fc1_input = 2, gelu_input = 8, fc2_input = 8, mlp_mask = 1;
  double norms = 4;
  double softmax = 2, softmax_mask = 1, softmax_dropout = 2;

  double attention() const { return qkv_input + query_key + value + output_input + attention_mask; }
  double mlp() const { return fc1_input + gelu_input + fc2_input + mlp_mask; }
  double scores() const { return softmax + softmax_mask + softmax_dropout; }
  double all() const { return attention() + mlp() + norms; }
  /// What every rank of the tensor axis holds whole without sequence parallelism: norms, masks, shared inputs.
  double whole() const { return norms + attention_mask + mlp_mask + qkv_input + fc1_input; }
};

enum class GptRecompute {
  None,       // sbh (10 + 24/t + 5 a s / (h t)), without tensor parallelism sbh (34 + 5 a s / h)
  Selective,  // the scores: sbh (10 + 24/t)
  Full,       // a layer's input: 2 sbh
};

/// Bytes per layer and micro-batch. `sequence_parallel`: everything over t, also what is whole otherwise.
double gpt_layer_bytes(const GptSizes& sizes, double t, GptRecompute recompute, bool sequence_parallel);

/// 1 + (p-1)/(p m) if m > 1, else 1: what interleaving adds to the first stage, which keeps p micro-batches of L/p
/// layers.
double interleave_factor(double p, double m);

/// Of a first stage under sequence parallelism: dropout masks of the embedding, s b h p / t; and with p = 1 what the
/// head keeps: (2 + 2) s b h / t and float32 logits 4 s b V / t.
double gpt_embedding_mask_bytes(const GptSizes& sizes, double t, double p);
double gpt_head_bytes(const GptSizes& sizes, double t);

/// 12 L h^2 (1 + 13/(12h) + (V+s)/(12 L h)).
double gpt_parameters(const GptSizes& sizes);
/// Of the layers' matrices alone: 12 L h^2 / (t p).
double gpt_layer_parameters(const GptSizes& sizes, double t, double p);

/// FLOPs of a step of `batch` sequences: 72 B s L h^2 (1 + s/(6h) + V/(12 L h)); with the scores made twice, s/(3h) for
/// s/(6h); with all layers made twice (Narayanan et al., arXiv 2104.04473), 96 B s L h^2 (1 + s/(6h) + V/(16 L h)).
double gpt_model_flops(const GptSizes& sizes, double batch);
double gpt_selective_flops(const GptSizes& sizes, double batch);
double gpt_full_recompute_flops(const GptSizes& sizes, double batch);

struct LlamaSizes {
  std::int64_t hidden, query_rows, key_rows, features, query_heads;  // query_rows = heads x width
};

/// Elements of 16 bits per token and layer: 4 h [/t under sequence parallelism] + (2 q + 2 n + 3 f)/t: the residual
/// stream and its norm twice; queries, output, keys and values; gate, up and product.
std::int64_t llama_layer_elements(const LlamaSizes& sizes, std::int64_t t, bool sequence_parallel);
/// Bytes of float32 log-sum-exp per token and layer.
std::int64_t llama_statistics_bytes(const LlamaSizes& sizes, std::int64_t t);
/// Of `tokens` tokens; under full recompute the layer's input alone.
std::int64_t llama_layer_bytes(const LlamaSizes& sizes, std::int64_t tokens, std::int64_t t, bool sequence_parallel);
std::int64_t llama_recompute_bytes(const LlamaSizes& sizes, std::int64_t tokens, std::int64_t t,
                                   bool sequence_parallel);

}  // namespace octavo
