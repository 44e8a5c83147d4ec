#include "octavo/plan/memory_estimate.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "octavo/base/error.h"
#include "octavo/base/text.h"

namespace octavo {

std::string_view memory_part_name(MemoryPart part) {
  switch (part) {
    case MemoryPart::Weights:
      return "weights";
    case MemoryPart::Gradients:
      return "gradients";
    case MemoryPart::Optimizer:
      return "optimizer";
    case MemoryPart::Activations:
      return "activations";
    case MemoryPart::Workspace:
      return "workspace";
    case MemoryPart::Communication:
      return "communication";
    case MemoryPart::Logits:
      return "logits";
    case MemoryPart::Data:
      return "data";
    case MemoryPart::Overhead:
      return "overhead";
  }
  throw InternalError("[plan] unknown part of memory");
}

std::string_view peak_place_text(PeakPlace place) {
  switch (place) {
    case PeakPlace::Embedding:
      return "embedding";
    case PeakPlace::MixerForward:
      return "forward of the attention of the last layer";
    case PeakPlace::FfnForward:
      return "forward of the MLP of the last layer";
    case PeakPlace::Loss:
      return "loss";
    case PeakPlace::FfnBackward:
      return "backward of the MLP of the last layer";
    case PeakPlace::MixerBackward:
      return "backward of the attention of the last layer";
    case PeakPlace::EmbeddingBackward:
      return "backward of the embedding";
    case PeakPlace::GradientSums:
      return "sums of partial gradients";
    case PeakPlace::OptimizerStep:
      return "optimizer step";
  }
  throw InternalError("[plan] unknown place of a peak");
}

Bytes MemoryEstimate::total() const {
  return std::accumulate(by_part.begin(), by_part.end(), Bytes{0});
}

std::string MemoryEstimate::to_string() const {
  std::array<int, kNumMemoryParts> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return by_part[a] > by_part[b]; });
  std::vector<std::string> parts;
  for (const int part : order) {
    if (by_part[part] == 0) continue;
    parts.push_back(cat(memory_part_name(static_cast<MemoryPart>(part)), " ", format_bytes(by_part[part])));
  }
  return cat(format_bytes(total()), " in the ", peak_place_text(place), ": ", join(parts, ", "));
}

}  // namespace octavo
