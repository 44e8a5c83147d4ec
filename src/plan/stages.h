// The layers of a model by kind, and how many of each a pipeline stage gets.
#pragma once

#include <vector>

#include "plan/layer_work.h"

namespace octavo {

struct StageLayers {
  std::vector<double> layers;  // by kind
};

class LayerKinds {
 public:
  LayerKinds() = default;
  LayerKinds(const ModelSpec& model, std::int64_t sequence_length);

  const std::vector<LayerWork>& kinds() const { return kinds_; }
  int num_layers() const { return static_cast<int>(prefix_.size()) - 1; }

  /// Layers of each stage, `chunks` runs of consecutive layers each: as even as the number of layers allows, the first
  /// ones larger; where it does not divide, embedding and head count as one layer each. Throws UsageError for more
  /// chunks than layers.
  std::vector<StageLayers> cut(int stages, int chunks) const;

 private:
  std::vector<LayerWork> kinds_;
  std::vector<std::vector<int>> prefix_{{}};  // [layer][kind]: how many come before
};

}  // namespace octavo
