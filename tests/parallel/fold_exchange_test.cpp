#include "octavo/parallel/fold/fold_exchange.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "octavo/comm/run_ranks.h"
#include "octavo/ops/cross_entropy.h"
#include "octavo/parallel/fold/fold_sequence.h"
#include "octavo/parallel/fold/whole_sequence.h"
#include "octavo/parallel/local_exchange.h"
#include "octavo/parallel/tensor/tensor_exchange.h"

using namespace octavo;

namespace {

/// One rank of a layout with its exchanges, in both orders.
struct Rank {
  Rank(World& world, const std::string& text, const std::vector<std::int64_t>& sequences, TokenOrder order)
      : layout(mesh_of(text)),
        lengths(sequences),
        cut{order, layout.mesh.size(Axis::Fold)},
        tensor(world.split(layout.mesh, std::array{Axis::Tensor})),
        fold(world.split(layout.mesh, std::array{Axis::Fold})),
        held(make_fold_sequence(*fold, order, lengths, at::kDouble, /*overlap=*/true)) {
    ids = held->cut(token_values(), 0);
    inner = make_tensor_exchange(*tensor, layout.tensor_form, ids.size(0));
    for (const PositionOrder positions : {PositionOrder::Sequences, PositionOrder::Ranks}) {
      whole.push_back(make_whole_sequence(cut, lengths, positions, at::kDouble));
      exchanges.push_back(make_fold_exchange(*fold, *inner, order, lengths, positions));
    }
  }

  static Layout mesh_of(const std::string& text) {
    if (text == "fold=3") return {.mesh = DeviceMesh({{Axis::Fold, 3}})};
    Layout layout{.mesh = DeviceMesh({{Axis::Tensor, 2}, {Axis::Fold, 2}})};
    if (text == "scatter") layout.tensor_form = TensorForm::Scatter;
    return layout;
  }

  /// A value of each token: 1, 2, ..., so that those of no token differ.
  at::Tensor token_values() const {
    std::int64_t tokens = 0;
    for (const std::int64_t length : lengths) tokens += length;
    return at::arange(1, tokens + 1, at::kLong);
  }

  /// Rows [T, 2] as they lie between blocks, from values of the positions held here.
  at::Tensor between_blocks(const at::Tensor& values) const {
    const at::Tensor rows = at::stack({values, 10 * values}, 1).to(at::kDouble);
    if (layout.tensor_form == TensorForm::AllReduce) return rows;
    const std::int64_t here = (rows.size(0) + tensor->size() - 1) / tensor->size();
    const at::Tensor padded = at::cat({rows, at::zeros({here * tensor->size() - rows.size(0), 2}, at::kDouble)});
    return padded.narrow(0, here * tensor->index(), here);
  }

  Layout layout;
  std::vector<std::int64_t> lengths;
  TokenCut cut;
  std::unique_ptr<Communicator> tensor, fold;
  std::unique_ptr<SequenceContext> held;
  at::Tensor ids;
  std::unique_ptr<UnitExchange> inner;
  std::vector<std::unique_ptr<SequenceContext>> whole;
  std::vector<std::unique_ptr<UnitExchange>> exchanges;
};

template <class Body>
void on_ranks(const Body& body) {
  for (const char* text : {"fold=3", "allreduce", "scatter"}) {
    for (const TokenOrder order : {TokenOrder::Zigzag, TokenOrder::Contiguous}) {
      for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{12}, {5, 1, 7}, {1}}) {
        const Layout layout = Rank::mesh_of(text);
        run_ranks({.num_ranks = layout.world_size()}, [&](World& world) { body(Rank(world, text, lengths, order)); });
      }
    }
  }
}

}  // namespace

TEST_CASE("gathering brings every position to every rank, in the order asked for") {
  on_ranks([](const Rank& rank) {
    for (std::size_t i = 0; i < rank.exchanges.size(); ++i) {
      const at::Tensor all = rank.exchanges[i]->gather(rank.between_blocks(rank.ids));
      const at::Tensor values = rank.whole[i]->cut(rank.token_values(), 0);
      CHECK(at::equal(all, at::stack({values, 10 * values}, 1).to(at::kDouble)));
    }
  });
}

TEST_CASE("a sum brings what all ranks computed of a position to where it lives") {
  on_ranks([](const Rank& rank) {
    const auto ranks = static_cast<std::int64_t>(rank.fold->size()) * rank.tensor->size();
    // Every rank's partial differs: its number, from 1 on, times the values.
    const std::int64_t number = 1 + rank.fold->index() * rank.tensor->size() + rank.tensor->index();
    for (std::size_t i = 0; i < rank.exchanges.size(); ++i) {
      const at::Tensor values = rank.whole[i]->cut(rank.token_values(), 0);
      const at::Tensor sum = rank.exchanges[i]->sum(number * at::stack({values, 10 * values}, 1).to(at::kDouble), true);
      CHECK(at::equal(sum, rank.between_blocks(rank.ids) * (ranks * (ranks + 1) / 2)));
    }
  });
}

TEST_CASE("ranks that do not count add nothing to a sum") {
  run_ranks({.num_ranks = 4}, [](World& world) {
    const Rank rank(world, "allreduce", {6}, TokenOrder::Zigzag);
    const bool counts = rank.tensor->index() == 0;
    const at::Tensor ones = at::ones({8, 2}, at::kDouble);
    CHECK((rank.exchanges[0]->sum(ones.clone(), counts) == 2.0).all().item<bool>());
    CHECK((rank.exchanges[0]->total(at::ones({3}, at::kDouble)) == 4.0).all().item<bool>());
  });
}

TEST_CASE("states of each rank's vocabulary rows merge to those of all, ranks without rows included") {
  const at::Tensor logits = at::sin(at::arange(40, at::kDouble) * 0.9).view({5, 8});
  const at::Tensor labels = at::tensor({7, 0, -1, 3, 6}, at::kLong);
  ops::VocabularyMerge expected = ops::vocabulary_merge_begin(5, at::kDouble, at::kCPU);
  ops::vocabulary_merge_block(expected, logits, labels, 0);
  run_ranks({.num_ranks = 4}, [&](World& world) {
    const Rank rank(world, "allreduce", {6}, TokenOrder::Zigzag);
    // Of fold index 1 no rank has rows; of index 0 the tensor ranks have 3 and 5.
    ops::VocabularyMerge state = ops::vocabulary_merge_begin(5, at::kDouble, at::kCPU);
    if (rank.fold->index() == 0) {
      const std::int64_t first = rank.tensor->index() == 0 ? 0 : 3, count = rank.tensor->index() == 0 ? 3 : 5;
      ops::vocabulary_merge_block(state, logits.narrow(1, first, count), labels, first);
    }
    rank.exchanges[1]->merge(state, true);
    CHECK(at::allclose(state.lse, expected.lse, 1e-14, 1e-14));
    CHECK(at::equal(state.picked, expected.picked));
  });
}

TEST_CASE("what moves is a gather and a scatter of all positions, and the tensor axis' part of those held here") {
  run_ranks({.num_ranks = 3}, [](World& world) {
    const Rank rank(world, "fold=3", {7}, TokenOrder::Zigzag);
    const at::Tensor all = rank.exchanges[0]->gather(rank.between_blocks(rank.ids));
    rank.exchanges[0]->sum(all, true);
    for (const LedgerRow& row : world.ledger().rows()) {
      CHECK(row.group == "fold");
      CHECK(row.purpose == Purpose::Activations);
      CHECK(row.count == 1);
      CHECK(row.logical == 12 * 2 * 8 * 2 / 3);  // 7 tokens in chunks of 2: 12 positions of 2 doubles; c = 2/3
    }
    CHECK(world.ledger().rows().size() == 2);
  });
}
