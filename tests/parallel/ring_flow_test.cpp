// Shards that go round the fold axis: what of others is in memory at once, and what is sent. That the numbers are right
// is what the proofs show.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "octavo/base/text.h"
#include "octavo/comm/record/record_world.h"
#include "octavo/layout/fold_steps.h"
#include "octavo/memory/account.h"
#include "octavo/parallel/fold/weights_flow.h"
#include "octavo/parallel/trips.h"

using namespace octavo;

namespace {

constexpr std::int64_t kHidden = 16;

/// 30 features and 33 vocabulary rows: no degree divides both.
ModelSpec model() {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = kHidden;
  model.vocab_size = 33;
  model.layers.push_back({AttentionSpec{4, 2, 4, false, {}}, GatedMlpSpec{30}});
  return model;
}
constexpr int kMlp = 2, kHead = 3;

/// One rank's flows in a recorded world.
struct Rank {
  Rank(const std::string& text, int rank, Backend backend, bool overlap = true)
      : layout(parse_layout(text)),
        world(make_record_world(rank, layout.world_size(), backend)),
        table(model()),
        store(table, place(table, layout, rank), ElementType::Float32, at::kMeta, /*for_training=*/true),
        groups(*world, layout, store.placement()),
        flows(make_weights_flows(store, groups, overlap)) {}

  /// Bytes of the largest part of a block that one rank stores, of `element_bytes` each.
  Bytes largest_part(int block, Bytes element_bytes) const {
    const BlockShare& share = store.placement().shares[block];
    const int degree = layout.mesh.size(Axis::Fold);
    std::int64_t units = 0;
    for (int step = 0; step < degree; ++step) {
      units = std::max(units, units_of_fold_step(share, degree, step).size());
    }
    std::int64_t width = 0;
    for (const PanelLayout& panel : table.blocks()[block].panels) width += panel.width;
    return units * width * element_bytes;
  }

  Layout layout;
  std::unique_ptr<World> world;
  ParamTable table;
  ParamStore store;
  RankGroups groups;
  std::vector<std::unique_ptr<Flow>> flows;
};

/// Uses every panel of every step as a block does.
void walk(const Rank& rank, int block, WeightTrip& trip, Direction direction) {
  const at::Tensor x_TH = at::empty({5, kHidden}, rank.store.weights().options());
  const at::Tensor units_TU = at::empty({5, 40}, rank.store.weights().options());
  const bool backward = direction == Direction::Backward;
  for (int place = 0; place < trip.num_steps(); ++place) {
    const int step = trip.step_at(place);
    for (const Half half : backward ? std::vector{Half::Mix, Half::Project} : std::vector{Half::Project, Half::Mix}) {
      const auto& panels = rank.table.blocks()[block].panels;
      for (int panel = 0; panel < static_cast<int>(panels.size()); ++panel) {
        if (panels[panel].half != half) continue;
        const at::Tensor rows = trip.panel(step, panel);
        CHECK(rows.size(0) == trip.units(step).size());
        if (backward) trip.add_product(step, panel, units_TU.narrow(1, 0, rows.size(0)), x_TH);
      }
      trip.half_done(step, half);
    }
  }
}

/// MLP and head forward, then both backward, in one chain. Returns the bytes that this took at once, beside `before`.
Bytes peak_of_a_chain(const Rank& rank, MemoryAccount& account, bool backward_too) {
  const at::NoGradGuard no_grad;
  const std::vector<std::pair<int, Direction>> passes = {{kMlp, Direction::Forward},
                                                         {kHead, Direction::Forward},
                                                         {kHead, Direction::Backward},
                                                         {kMlp, Direction::Backward}};
  const Bytes inputs = 5 * (kHidden + 40) * 4;
  const Bytes before = account.live().total + inputs;
  Trips trips(0);
  std::vector<WeightTrip*> chain;
  for (const auto& [block, direction] : passes) {
    if (!backward_too && direction == Direction::Backward) break;
    chain.push_back(&trips.add(*rank.flows[block], direction));
  }
  account.reset_peak();
  chain.front()->start();
  for (std::size_t i = 0; i < chain.size(); ++i) walk(rank, passes[i].first, *chain[i], passes[i].second);
  for (WeightTrip* trip : chain) trip->finish();
  CHECK(account.live().total == before - inputs);
  return account.peak().total - before;
}

}  // namespace

TEST_CASE("parts of two other ranks and two gradients are here at once, no more, and none where memory is shared") {
  install_tracking_allocator();
  const AccountHandle account = MemoryAccount::create();
  const ChargeTo charge(account.get());
  for (const char* route : {"ring", "direct"}) {
    for (const int degree : {2, 3, 4, 8}) {
      for (int index = 0; index < degree; ++index) {
        for (const bool overlap : {true, false}) {
          const std::string text = cat("fold=", degree, ":weights:", route);
          INFO(text << ", rank " << index << ", overlap " << overlap);
          const Rank alone(text, index, Backend::Gloo, overlap);
          const Bytes part = std::max(alone.largest_part(kMlp, 4), alone.largest_part(kHead, 4));
          const Bytes forward = peak_of_a_chain(alone, *account, false);
          CHECK(forward <= 2 * part);
          // With two ranks, and where nothing travels ahead, one other part is enough; it is never less.
          CHECK(forward >= std::min(alone.largest_part(kMlp, 4), alone.largest_part(kHead, 4)) / 2);
          CHECK(peak_of_a_chain(alone, *account, true) <= 4 * part);

          const Rank sharing(text, index, Backend::Threads, overlap);
          CHECK(peak_of_a_chain(sharing, *account, false) <= 0);
          CHECK(peak_of_a_chain(sharing, *account, true) <= 2 * part);
        }
      }
    }
  }
}

TEST_CASE("every rank sends all parts but one round the ring, or its own to everyone, and the sums of all others") {
  const auto rows_of = [](const Rank& rank) {
    const AccountHandle account = MemoryAccount::create();
    (void)peak_of_a_chain(rank, *account, true);
    return rank.world->ledger().rows();
  };
  const auto row = [](const std::vector<LedgerRow>& rows, Purpose purpose, Collective kind) {
    const LedgerRow* found = find_row(rows, {.group = "fold", .purpose = purpose, .kind = kind});
    REQUIRE(found != nullptr);
    return *found;
  };
  // 30 features and 33 vocabulary rows over 4: an MLP row has 3 * 16 elements of 4 bytes, a vocabulary row 16.
  const auto bytes = [](std::int64_t features, std::int64_t rows) { return (features * 48 + rows * 16) * 4; };
  for (const Backend backend : {Backend::Gloo, Backend::Threads}) {
    for (const char* text : {"fold=4:weights", "fold=4:weights:direct"}) {
      Bytes total = 0;
      for (int index = 0; index < 4; ++index) {
        const Rank rank(text, index, backend);
        const auto rows = rows_of(rank);
        const auto units = [&](int block, int of) {
          return units_of_fold_step(rank.store.placement().shares[block], 4, of % 4).size();
        };
        const bool ring = backend == Backend::Gloo && rank.layout.fold_route == FoldRoute::Ring;
        const int previous = index + 3;
        const Bytes own = bytes(units(kMlp, index), units(kHead, index));
        const Bytes all_but = bytes(30, 33) - bytes(units(kMlp, previous), units(kHead, previous));
        const LedgerRow weights = row(rows, Purpose::Weights, Collective::Send);
        CHECK(weights.count == 2 * 3 * 4);  // passes, other ranks, panels
        CHECK(weights.logical == 2 * (ring ? all_but : 3 * own));
        CHECK(weights.copied == (backend == Backend::Gloo ? weights.logical : 0));
        CHECK(row(rows, Purpose::Weights, Collective::Receive).copied == 0);
        const LedgerRow gradients = row(rows, Purpose::Gradients, Collective::Send);
        CHECK(gradients.count == 3 * 4);
        CHECK(gradients.logical == bytes(30, 33) - own);
        total += weights.logical;
      }
      CHECK(total == 2 * 3 * bytes(30, 33));  // (D-1) W e per pass: c W e a rank
    }
  }
}

TEST_CASE("forward begins with the own part, backward ends with it, and a step has the same units in both") {
  for (int index = 0; index < 3; ++index) {
    const Rank rank("fold=3:weights", index, Backend::Threads);
    const auto forward = rank.flows[kMlp]->begin(Direction::Forward, 0),
               backward = rank.flows[kMlp]->begin(Direction::Backward, 0);
    CHECK(forward->step_at(0) == 0);
    CHECK(backward->step_at(2) == 0);
    for (int step = 0; step < 3; ++step) {
      CHECK(forward->units(step).begin == 10 * ((index + step) % 3));
      CHECK(backward->units(step).begin == forward->units(step).begin);
    }
  }
}

TEST_CASE("attention, and a block of fewer units than ranks, does not go round") {
  const ParamTable table(model());
  const Placement placement = place(table, parse_layout("fold=31:weights"), 0);
  const auto round = [&](int block, int degree) {
    return goes_round(table.blocks()[block].kind, placement.shares[block], degree);
  };
  CHECK(!round(1, 2));
  CHECK(round(kMlp, 30));
  CHECK(!round(kMlp, 31));
  CHECK(round(0, 33));
  CHECK(!round(kHead, 34));
}
