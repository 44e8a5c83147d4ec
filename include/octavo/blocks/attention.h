// Causal softmax attention with grouped heads; the unit is a KV head with its query heads (models.md 5.1).
#pragma once

#include <memory>

#include "octavo/blocks/block.h"

namespace octavo {

std::unique_ptr<Block> make_attention(BlockLayout layout, const AttentionSpec& spec, double norm_eps);

}  // namespace octavo
