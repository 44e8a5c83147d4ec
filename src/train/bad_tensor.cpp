#include "train/bad_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "octavo/base/text.h"

namespace octavo {
namespace {

bool is_bad(const at::Tensor& tensor) {
  return !at::isfinite(tensor).all().item<bool>();
}

/// Whether the primary elements of a stored part hold a bad value.
bool primary_is_bad(const ParamStore& store, const StoredPart& part) {
  for (const Interval& interval : store.placement().primary) {
    const Interval both = intersection(interval, {part.local().begin, part.local().end});
    if (!both.empty() && is_bad(store.gradients().narrow(0, both.begin, both.size()))) return true;
  }
  return false;
}

}  // namespace

int first_index(Communicator& ranks, bool is_mine) {
  const at::Tensor flags = at::zeros({ranks.size()}, at::kLong);
  flags.data_ptr<std::int64_t>()[ranks.index()] = is_mine;
  ranks.all_reduce(flags, Purpose::Control).wait();
  const std::int64_t* begin = flags.const_data_ptr<std::int64_t>();
  const std::int64_t* found = std::find(begin, begin + ranks.size(), 1);
  return found == begin + ranks.size() ? -1 : static_cast<int>(found - begin);
}

std::string first_bad_weight(const ParamStore& store) {
  for (int slab = 0; slab < static_cast<int>(store.table().slabs().size()); ++slab) {
    if (is_bad(store.weight(slab))) return cat("the weights of ", store.table().slabs()[slab].name);
  }
  return "";
}

std::string first_bad_tensor(Decoder& decoder, const ParamStore& store, Communicator& replica,
                             const TokenBatch& batch) {
  std::string found = first_bad_weight(store);
  const int holder = first_index(replica, !found.empty());
  if (holder >= 0) return holder == replica.index() ? found : cat("weights of rank ", holder, " of its replica");
  const at::Tensor hidden = decoder.hidden(batch, [&](int block, const at::Tensor& x) {
    if (found.empty() && is_bad(x)) found = cat("the output of ", store.table().blocks()[block].name);
  });
  if (found.empty() && is_bad(hidden)) found = "the output of the final norm";
  // Logits row by row: whole, they may not fit.
  for (std::int64_t t = 0; found.empty() && t < hidden.size(0); ++t) {
    if (is_bad(decoder.logits(hidden.narrow(0, t, 1)))) found = cat("the logits of token ", t);
  }
  return found;
}

std::string first_bad_gradient(const ParamStore& store) {
  const auto& parts = store.placement().parts;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (primary_is_bad(store, *part)) return cat("the gradient of ", store.table().slabs()[part->slab].name);
  }
  return "";
}

}  // namespace octavo
