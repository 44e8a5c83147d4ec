#include "plan/stages.h"

#include <algorithm>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

LayerKinds::LayerKinds(const ModelSpec& model, std::int64_t sequence_length) {
  std::vector<int> kind_of;
  for (const LayerSpec& layer : model.layers) {
    const LayerWork work = layer_work(model, layer, sequence_length);
    const auto found = std::find(kinds_.begin(), kinds_.end(), work);
    kind_of.push_back(static_cast<int>(found - kinds_.begin()));
    if (found == kinds_.end()) kinds_.push_back(work);
  }
  prefix_.assign(1, std::vector<int>(kinds_.size(), 0));
  for (const int kind : kind_of) {
    prefix_.push_back(prefix_.back());
    ++prefix_.back()[kind];
  }
}

StageLayers LayerKinds::cut(int stages, int chunks) const {
  const int parts = stages * chunks, layers = num_layers();
  const bool ends_fill_up = layers % parts != 0 && (layers + 2) % parts == 0;
  if (parts > layers && !ends_fill_up) {
    throw UsageError(cat("[plan] ", stages, " stages x ", chunks, " parts of ", layers,
                         " layers; a part has at least one: use fewer"));
  }
  // Places are layers, or with the ends embedding, layers, head; a border between two of them is one between layers.
  const bool with_ends = ends_fill_up || (layers % parts != 0 && (layers + 2) / parts >= 2);
  const int places = with_ends ? layers + 2 : layers, shift = with_ends ? 1 : 0;
  StageLayers cut(stages, kinds_.size());
  int begin = 0;
  for (int part = 0; part < parts; ++part) {
    const int end = begin + places / parts + (part < places % parts ? 1 : 0);
    const int first = std::clamp(begin - shift, 0, layers), last = std::clamp(end - shift, 0, layers);
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      cut.at(part % stages, kind) += prefix_[last][kind] - prefix_[first][kind];
    }
    begin = end;
  }
  return cut;
}

}  // namespace octavo
