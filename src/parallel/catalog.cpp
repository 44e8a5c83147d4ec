#include "octavo/parallel/catalog.h"

#include "octavo/parallel/fold/fold_sequence.h"
#include "octavo/parallel/fold/weights_flow.h"
#include "octavo/parallel/local_exchange.h"
#include "octavo/parallel/local_flow.h"
#include "octavo/parallel/local_sequence.h"
#include "octavo/parallel/tensor/tensor_exchange.h"

namespace octavo {

std::vector<std::unique_ptr<Flow>> make_flows(ParamStore& store, RankGroups& groups, const RunOptions& options) {
  const auto num_blocks = static_cast<int>(store.table().blocks().size());
  if (groups.fold->size() > 1) return make_weights_flows(store, groups, options.overlap);
  std::vector<std::unique_ptr<Flow>> flows;
  for (int block = 0; block < num_blocks; ++block) {
    // Kept values exist for all units at once anyway, so groups of units would save nothing.
    const bool keeps = options.stash.kind == StashPolicy::Kind::Keep;
    const int steps = keeps ? 1 : recommended_steps(store.table().blocks()[block], store.placement().shares[block]);
    flows.push_back(make_local_flow(store, block, steps));
  }
  return flows;
}

std::unique_ptr<SequenceContext> make_sequence(const ParamStore& store, RankGroups& groups,
                                               const std::vector<std::int64_t>& lengths, const RunOptions& options) {
  if (groups.fold->size() > 1) {
    return make_fold_sequence(*groups.fold, groups.layout.fold_order, lengths, store.weights().options(),
                              options.overlap);
  }
  return make_local_sequence(lengths, store.weights().options());
}

std::unique_ptr<UnitExchange> make_exchange(RankGroups& groups, std::int64_t num_tokens) {
  if (groups.tensor->size() == 1) return make_local_exchange();
  return make_tensor_exchange(*groups.tensor, groups.layout.tensor_form, num_tokens);
}

}  // namespace octavo
