#include "octavo/parallel/surroundings.h"

#include <numeric>
#include <utility>

#include "octavo/layout/token_spans.h"
#include "octavo/parallel/fold/fold_exchange.h"
#include "octavo/parallel/fold/whole_sequence.h"

namespace octavo {

Surroundings::Surroundings(const ParamStore& store, RankGroups& groups, const ModelFlows& flows,
                           const std::vector<std::int64_t>& lengths, int index, FoldPasses passes,
                           const RunOptions& options)
    : table_(store.table()), groups_(groups), flows_(flows) {
  const TokenCut cut{groups.layout.fold_order, groups.fold->size()};
  std::int64_t positions = 0;
  for (const std::int64_t length : lengths) positions += cut.padded_length(length);
  forms_ = fold_forms(table_, groups.layout, store.placement().shares,
                      {positions, store.compute_type(), passes, groups.reads_in_place});
  add_batch(index, make_sequence(store, groups, lengths, options), make_exchange(groups, positions / cut.num_ranks));
  if (cut.num_ranks == 1) return;
  for (const PositionOrder order : {PositionOrder::Sequences, PositionOrder::Ranks}) {
    add_batch(index, make_whole_sequence(cut, lengths, order, store.weights().options()),
              make_fold_exchange(*groups.fold, between_blocks().exchange, cut.order, lengths, order));
  }
}

Flow& Surroundings::flow(int block, Direction direction) const {
  return brings_tokens(block, direction) ? *flows_.of_units[block] : *flows_.of_tokens[block];
}

const MicroBatch& Surroundings::batch(int block, Direction direction) const {
  if (!brings_tokens(block, direction)) return between_blocks();
  const bool meets = table_.blocks()[block].kind == BlockKind::Attention;
  return batches_[1 + static_cast<int>(meets ? PositionOrder::Sequences : PositionOrder::Ranks)].batch;
}

bool Surroundings::speaks_for_loss() const {
  const auto head = static_cast<int>(forms_.size()) - 1;
  return groups_.fold->index() == 0 || !brings_tokens(head, Direction::Forward);
}

void Surroundings::add_batch(int index, std::unique_ptr<SequenceContext> sequence,
                             std::unique_ptr<UnitExchange> exchange) {
  const MicroBatch batch{index, *sequence, *exchange};
  batches_.push_back({std::move(sequence), std::move(exchange), batch});
}

bool Surroundings::brings_tokens(int block, Direction direction) const {
  const BlockForms& forms = forms_[block];
  return (direction == Direction::Forward ? forms.forward : forms.backward) == FoldForm::Activations;
}

}  // namespace octavo
