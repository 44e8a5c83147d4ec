// The parameters of a model as its checkpoint files hold them: names, shapes, counts and bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/base/units.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// Every parameter of the model in checkpoint order (embedding, layers, final norm, head). A tied head has none.
std::vector<ParameterSpec> parameters(const ModelSpec& model);

/// Those of the blocks for multi-token prediction, which are no part of the model itself; they share its embedding and
/// head. Empty without such blocks.
std::vector<ParameterSpec> mtp_parameters(const ModelSpec& model);

/// Elements of all parameters; a tied matrix counts once.
std::int64_t num_parameters(const ModelSpec& model);
std::int64_t num_mtp_parameters(const ModelSpec& model);

/// Elements that one token passes: all but those of the experts that are not chosen for it.
std::int64_t num_active_parameters(const ModelSpec& model);

/// Experts of a layer that has some; 0 for a model without.
std::int64_t num_experts(const ModelSpec& model);

/// Elements of one layer: mixer with its norm, and feed-forward part with its norm.
std::int64_t mixer_parameters(const ModelSpec& model, const LayerSpec& layer);
std::int64_t ffn_parameters(const ModelSpec& model, const LayerSpec& layer);

/// Bytes of all parameters in a file whose elements have `element_bytes`, those published in float32 four.
Bytes file_bytes(const ModelSpec& model, Bytes element_bytes);

}  // namespace octavo
