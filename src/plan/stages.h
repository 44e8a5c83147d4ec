// The layers of a model by kind, and how many of each a pipeline stage gets.
#pragma once

#include <vector>

#include "plan/layer_work.h"

namespace octavo {

/// How many layers of each kind a stage has.
class StageLayers {
 public:
  StageLayers(int num_stages, std::size_t num_kinds)
      : num_kinds_(num_kinds), counts_(static_cast<std::size_t>(num_stages) * num_kinds, 0) {}
  double& at(int stage, std::size_t kind) { return counts_[static_cast<std::size_t>(stage) * num_kinds_ + kind]; }
  double at(int stage, std::size_t kind) const { return counts_[static_cast<std::size_t>(stage) * num_kinds_ + kind]; }

 private:
  std::size_t num_kinds_;
  std::vector<double> counts_;
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
  StageLayers cut(int stages, int chunks) const;

 private:
  std::vector<LayerWork> kinds_;
  std::vector<std::vector<int>> prefix_{{}};  // [layer][kind]: how many come before
};

}  // namespace octavo
