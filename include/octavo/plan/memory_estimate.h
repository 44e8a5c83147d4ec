// What memory is spent on at the moment of a training step when a rank has most in use.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "octavo/base/units.h"

namespace octavo {

enum class MemoryPart {
  Weights,        // in the compute type
  Gradients,      // sums that stay between micro-batches
  Optimizer,      // moments, and masters where weights are narrower
  Activations,    // kept from forward for backward
  Workspace,      // alive within one block
  Communication,  // of other ranks, or on the way to them
  Logits,         // and what the loss makes of them
  Data,           // token ids and labels
  Overhead,       // what a framework's allocator or runtime takes beside its tensors
};
inline constexpr int kNumMemoryParts = 9;

/// "weights", "gradients", ...
std::string_view memory_part_name(MemoryPart part);

/// Where in the step the peak is.
enum class PeakPlace {
  Embedding,
  MixerForward,
  FfnForward,
  Loss,
  FfnBackward,
  MixerBackward,
  EmbeddingBackward,
  GradientSums,
  OptimizerStep,
};

/// "backward of the MLP of the last layer": for people.
std::string_view peak_place_text(PeakPlace place);

struct MemoryEstimate {
  std::array<Bytes, kNumMemoryParts> by_part{};
  PeakPlace place = PeakPlace::OptimizerStep;
  int stage = 0;  // of the pipeline, whose rank that is

  Bytes of(MemoryPart part) const { return by_part[static_cast<int>(part)]; }
  Bytes total() const;
  /// "31.2 GB in the backward of ...: activations 20.1 GB, weights 4.0 GB": the parts that hold anything, largest
  /// first.
  std::string to_string() const;
};

}  // namespace octavo
