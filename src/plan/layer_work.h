// What one layer asks for, per kind of layer: the numbers behind plan/step_time.h, for no layout yet.
#pragma once

#include <vector>

#include "octavo/plan/job.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// [tokens, in] x [in, out]. Which of the two sides tensor and fold cut; the rest is whole on every rank.
struct MatmulShape {
  enum class Cut { Nothing, In, Out };
  double in = 0, out = 0;
  double key_out = 0;  // of `out`, what belongs to keys and values: cut by their heads
  Cut cut = Cut::Nothing;
};

struct LayerWork {
  std::vector<MatmulShape> mixer, ffn;  // ffn: of every token; experts apart
  MatmulShape expert_in, expert_out;    // of one expert
  double num_experts = 0, experts_per_token = 0;

  double mixer_units = 1;     // KV heads, key heads, latent heads
  double parts_per_unit = 1;  // query heads of a KV head
  double mixer_core = 0;      // FLOPs beyond matmuls, forward, one sequence
  bool is_recurrent = false;
  double query_width = 0;      // elements per token of queries (and of the output)
  double key_width = 0;        // of keys and values together
  double state_bytes = 0;      // that a recurrent layer hands on: [state | transition], float32
  double dense_units = 1;      // features of the MLP, or of the shared expert
  double dense_features = 0;   // per token, with gates: what the activation function reads and writes
  double routed_features = 0;  // the same of the experts that a token takes

  double mixer_elements = 0, ffn_elements = 0;  // of matrices, all experts
  double expert_elements = 0;                   // of them, in experts

  bool operator==(const LayerWork&) const;
};

LayerWork layer_work(const ModelSpec& model, const LayerSpec& layer, std::int64_t sequence_length);

}  // namespace octavo
