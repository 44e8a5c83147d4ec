#include "train/bad_tensor.h"

#include <ATen/ATen.h>

#include "octavo/base/text.h"

namespace octavo {
namespace {

bool is_bad(const at::Tensor& tensor) {
  return !at::isfinite(tensor).all().item<bool>();
}

}  // namespace

std::string first_bad_tensor(Decoder& decoder, const ParamStore& store, const TokenBatch& batch) {
  for (int slab = 0; slab < static_cast<int>(store.table().slabs().size()); ++slab) {
    if (is_bad(store.weight(slab))) return cat("the weights of ", store.table().slabs()[slab].name);
  }
  std::string found;
  decoder.hidden(batch, [&](int block, const at::Tensor& x) {
    if (found.empty() && is_bad(x)) found = cat("the output of ", store.table().blocks()[block].name);
  });
  return found.empty() ? "the logits" : found;
}

std::string first_bad_gradient(const ParamStore& store) {
  for (int slab = static_cast<int>(store.table().slabs().size()) - 1; slab >= 0; --slab) {
    if (is_bad(store.gradient(slab))) return cat("the gradient of ", store.table().slabs()[slab].name);
  }
  return "none on this rank (the sum of squares overflows)";
}

}  // namespace octavo
