// What decoding keeps of the tokens seen so far, per sequence (models.md 8).
#pragma once

#include "octavo/base/units.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// Keys and values of one token in all softmax layers: 2 * KV heads * head_dim elements a layer; of latent attention
/// kv_rank + rope_dim.
Bytes kv_cache_bytes_per_token(const ModelSpec& model, Bytes element_bytes);

/// The recurrent states of all DeltaNet layers, [K, V] in float32 per value head, whatever the context.
Bytes recurrent_state_bytes(const ModelSpec& model);
Bytes recurrent_state_bytes(const DeltaNetSpec& spec);

/// What a span of tokens does to the states of a DeltaNet layer, as ranks that cut the sequence exchange it: per value
/// head [K, V + K] in float32, whatever the span's length (models.md 9).
Bytes affine_summary_bytes(const DeltaNetSpec& spec);

/// The last conv_width - 1 rows of a DeltaNet layer's convolution input: what decoding keeps, and what a rank hands on
/// to the one that has the next tokens.
Bytes conv_state_bytes(const DeltaNetSpec& spec, Bytes element_bytes);

}  // namespace octavo
