// A layout as users write it: --layout "data=4:zero1". Axes outermost first, the last varies fastest; an axis is
// `name=degree{:option}`. No axes: one rank.
#pragma once

#include <string>
#include <string_view>

#include "octavo/mesh/device_mesh.h"

namespace octavo {

/// What the data axis keeps whole on every rank (Rajbhandari et al., ZeRO, 2020).
enum class ZeroStage {
  None = 0,       // weights, gradients and optimizer state on every rank
  Optimizer = 1,  // master weights and moments in 1/R intervals
};

struct Layout {
  DeviceMesh mesh{{}};
  ZeroStage zero = ZeroStage::None;

  int world_size() const { return mesh.world_size(); }
  /// "data=4:zero1"; options that are the default are left out. Parses back to an equal layout.
  std::string to_string() const;
};

/// Throws UsageError for a word that is no axis or option of that axis (naming the nearest), a repeated axis or option,
/// a degree that is not a number >= 1, and a degree above 1 on an axis that is not built.
Layout parse_layout(std::string_view text);

}  // namespace octavo
