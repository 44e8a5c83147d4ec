#include "octavo/parallel/catalog.h"

#include "octavo/parallel/local_flow.h"
#include "octavo/parallel/local_sequence.h"

namespace octavo {

std::unique_ptr<Flow> make_flow(ParamStore& store, int block, const StashPolicy& stash) {
  // Kept values exist for all units at once anyway, so groups of units would save nothing.
  const bool keeps = stash.kind == StashPolicy::Kind::Keep;
  return make_local_flow(store, block, keeps ? 1 : recommended_steps(store.table().blocks()[block]));
}

std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, const std::vector<std::int64_t>& lengths) {
  return make_local_sequence(lengths, store.weights().options());
}

}  // namespace octavo
