// What surroundings may change about a block: where tokens meet tokens. Implemented by parallel/.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "octavo/ops/attention.h"
#include "octavo/ops/rope.h"

namespace octavo {

/// The tokens of one micro-batch as attention sees them. Letters: T tokens held here, S tokens whose keys are seen.
class SequenceContext {
 public:
  virtual ~SequenceContext() = default;
  /// Rotary tables for the global positions of the T tokens held here.
  virtual const ops::RopeTable& rope(const RopeSpec& spec, std::int64_t head_dim) = 0;
  /// k, v [T, U, D] of the tokens held here -> [S, U, D] of every token that a query here may see. Differentiable.
  /// Collective over the axes that cut tokens.
  virtual std::pair<at::Tensor, at::Tensor> exchange(const at::Tensor& k, const at::Tensor& v) = 0;
  /// Which queries (of T) see which keys (of S).
  virtual const std::vector<ops::AttentionPiece>& pieces() const = 0;
};

}  // namespace octavo
