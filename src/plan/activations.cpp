#include "octavo/plan/activations.h"

namespace octavo {

double gpt_layer_bytes(const GptSizes& sizes, double t, GptRecompute recompute, bool sequence_parallel) {
  const GptLayerTerms terms;
  const double sbh = sizes.s * sizes.b * sizes.h;
  if (recompute == GptRecompute::Full) return 2 * sbh / (sequence_parallel ? t : 1);
  const double whole = terms.whole() / (sequence_parallel ? t : 1), cut = (terms.all() - terms.whole()) / t;
  const double scores =
      recompute == GptRecompute::None ? terms.scores() * sizes.a * sizes.s * sizes.s * sizes.b / t : 0;
  return sbh * (whole + cut) + scores;
}

double interleave_factor(double p, double m) {
  return m > 1 ? 1 + (p - 1) / (p * m) : 1;
}

double gpt_embedding_mask_bytes(const GptSizes& sizes, double t, double p) {
  return sizes.s * sizes.b * sizes.h * p / t;
}

double gpt_head_bytes(const GptSizes& sizes, double t) {
  return (4 * sizes.s * sizes.b * sizes.h + 4 * sizes.s * sizes.b * sizes.vocabulary) / t;
}

double gpt_parameters(const GptSizes& sizes) {
  const double lh = sizes.layers * sizes.h;
  return 12 * lh * sizes.h * (1 + 13 / (12 * sizes.h) + (sizes.vocabulary + sizes.s) / (12 * lh));
}

double gpt_layer_parameters(const GptSizes& sizes, double t, double p) {
  return 12 * sizes.layers * sizes.h * sizes.h / (t * p);
}

double gpt_model_flops(const GptSizes& sizes, double batch) {
  const double lh = sizes.layers * sizes.h;
  return 72 * batch * sizes.s * lh * sizes.h * (1 + sizes.s / (6 * sizes.h) + sizes.vocabulary / (12 * lh));
}

double gpt_selective_flops(const GptSizes& sizes, double batch) {
  const double lh = sizes.layers * sizes.h;
  return 72 * batch * sizes.s * lh * sizes.h * (1 + sizes.s / (3 * sizes.h) + sizes.vocabulary / (12 * lh));
}

double gpt_full_recompute_flops(const GptSizes& sizes, double batch) {
  const double lh = sizes.layers * sizes.h;
  return 96 * batch * sizes.s * lh * sizes.h * (1 + sizes.s / (6 * sizes.h) + sizes.vocabulary / (16 * lh));
}

std::int64_t llama_layer_elements(const LlamaSizes& sizes, std::int64_t t, bool sequence_parallel) {
  return 4 * sizes.hidden / (sequence_parallel ? t : 1) +
         (2 * sizes.query_rows + 2 * sizes.key_rows + 3 * sizes.features) / t;
}

std::int64_t llama_statistics_bytes(const LlamaSizes& sizes, std::int64_t t) {
  return 4 * sizes.query_heads / t;
}

std::int64_t llama_layer_bytes(const LlamaSizes& sizes, std::int64_t tokens, std::int64_t t, bool sequence_parallel) {
  return tokens * (2 * llama_layer_elements(sizes, t, sequence_parallel) + llama_statistics_bytes(sizes, t));
}

std::int64_t llama_recompute_bytes(const LlamaSizes& sizes, std::int64_t tokens, std::int64_t t,
                                   bool sequence_parallel) {
  return 2 * tokens * sizes.hidden / (sequence_parallel ? t : 1);
}

}  // namespace octavo
