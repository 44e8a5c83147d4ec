// The shapes of the design's measurements.
#pragma once

#include <string>

#include "octavo/spec/model_spec.h"

namespace octavo {

/// A: hidden 512, 8 layers; B: hidden 1024, 4 layers. KV heads 4 of 64, vocabulary 4096, untied.
inline ModelSpec bench_shape(const std::string& name) {
  const bool is_a = name == "A";
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = is_a ? 512 : 1024;
  model.vocab_size = 4096;
  for (int layer = 0; layer < (is_a ? 8 : 4); ++layer) {
    model.layers.push_back({AttentionSpec{is_a ? 8 : 16, 4, 64, false, {}}, GatedMlpSpec{is_a ? 2048 : 4096}});
  }
  return model;
}

}  // namespace octavo
