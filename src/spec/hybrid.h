// What Qwen3-Next and the Qwen3.5 types share (models.md 2, 5.3 and 6): Gated DeltaNet layers, between them softmax
// attention with an output gate and a partial rotary embedding, zero-centred norms, a block for multi-token prediction.
#pragma once

#include <string>
#include <vector>

#include "spec/config_reader.h"

namespace octavo {

/// The model without feed-forward parts, which the types have different ones of: model.layers hold the mixers.
ModelSpec read_hybrid_mixers(ConfigReader& config, bool has_sections);

/// Experts of these types: beside them a shared expert, behind a gate of its own.
MoeSpec read_hybrid_moe(ConfigReader& config);

}  // namespace octavo
