// What can be done where the tensor axis does not divide a model, and what each way costs: part of an audit. Copies and
// padding are priced in layout/misfit.h; here are what they come to over all kinds of blocks, and the ways round them.
#pragma once

#include <cstdint>
#include <vector>

#include "octavo/layout/misfit.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// One way to run the layout's tensor degree, and its price for all layers; `misfit` is Replicate or Pad. A pipeline
/// rank pays for the layers of its stage alone.
struct MisfitPolicy {
  Misfit misfit;
  std::vector<MisfitPrice> prices;  // one per kind of block that does not divide
  std::vector<MisfitBytes> bytes;   // of each, per rank; times the tensor ranks it is the total
  std::int64_t extra_elements = 0;  // over the ranks of a tensor group
};
/// Both; none if every block divides.
std::vector<MisfitPolicy> misfit_policies(const ParamTable& table, const Layout& layout, ElementType compute);

/// Gathering q, k and v over the tensor axis instead of copying K and V weights: the projections are cut evenly,
/// whether that falls between heads or not; every softmax layer's output of them is all-gathered, and reduce-scattered
/// in backward. X = T * (query and gate rows + key and value rows) elements; a rank receives (n-1)/n of that.
struct GatherPrice {
  std::int64_t full_elements = 0;      // X, of one layer
  std::int64_t received_elements = 0;  // of one layer, forward
  Bytes forward = 0, backward = 0;     // received per rank, all layers
};
GatherPrice gather_price(const ModelSpec& model, std::int64_t degree, std::int64_t tokens, Bytes element_bytes);

/// The fold axis of the same degree in the tensor axis's place: it stores 1/D of everything, whatever D. Of a pipeline,
/// the first stage.
struct FoldInstead {
  Layout layout;
  std::int64_t elements;  // stored by a rank
  Bytes sent;             // per rank, for a training step of one sequence
};
FoldInstead fold_instead(const ModelSpec& model, const ParamTable& table, const Layout& layout, std::int64_t tokens,
                         ElementType compute);

}  // namespace octavo
