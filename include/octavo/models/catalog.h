// From what a spec says to the blocks that compute it.
#pragma once

#include <memory>
#include <vector>

#include "octavo/blocks/block.h"
#include "octavo/layout/param_table.h"

namespace octavo {

/// The blocks between embedding and head, in order. A new kind of layer is one more case here.
std::vector<std::unique_ptr<Block>> make_blocks(const ModelSpec& model, const ParamTable& table);

}  // namespace octavo
