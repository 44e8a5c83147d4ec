// down(silu(gate x) * up x); the unit is one feature (models.md 4.3).
#pragma once

#include <memory>

#include "octavo/blocks/block.h"

namespace octavo {

std::unique_ptr<Block> make_gated_mlp(BlockLayout layout, double norm_eps);

}  // namespace octavo
