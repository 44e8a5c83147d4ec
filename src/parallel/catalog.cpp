#include "octavo/parallel/catalog.h"

#include "octavo/layout/fold_units.h"
#include "octavo/parallel/fold/fold_sequence.h"
#include "octavo/parallel/fold/units_flow.h"
#include "octavo/parallel/fold/weights_flow.h"
#include "octavo/parallel/local_exchange.h"
#include "octavo/parallel/local_flow.h"
#include "octavo/parallel/local_sequence.h"
#include "octavo/parallel/tensor/tensor_exchange.h"

namespace octavo {

namespace {

/// For a block of which `num_units` units are computed where they are stored.
int steps_of(const ParamStore& store, int block, std::int64_t num_units, const RunOptions& options) {
  // Kept values exist for all units at once anyway, so groups of units would save nothing.
  if (options.stash.kind == StashPolicy::Kind::Keep) return 1;
  return recommended_steps(store.table().blocks()[block], store.placement().shares[block], num_units);
}

}  // namespace

ModelFlows make_flows(ParamStore& store, RankGroups& groups, const RunOptions& options) {
  const auto num_blocks = static_cast<int>(store.table().blocks().size());
  Communicator& fold = *groups.fold;
  ModelFlows flows;
  if (fold.size() > 1) flows.of_tokens = make_weights_flows(store, groups, options.overlap);
  for (int block = 0; block < num_blocks; ++block) {
    const BlockShare& share = store.placement().shares[block];
    if (fold.size() == 1) {
      flows.of_tokens.push_back(make_local_flow(store, block, steps_of(store, block, share.computed_units(), options)));
      continue;
    }
    const Interval units = fold_units(store.table().blocks()[block], share, fold.size())[fold.index()];
    flows.of_units.push_back(
        make_units_flow(store, fold, block, steps_of(store, block, units.size(), options), options.overlap));
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
