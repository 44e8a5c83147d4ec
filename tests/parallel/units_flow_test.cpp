#include "octavo/parallel/fold/units_flow.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "octavo/comm/run_ranks.h"
#include "octavo/layout/fold_units.h"
#include "octavo/parallel/trips.h"

using namespace octavo;

namespace {

constexpr int kEmbedding = 0, kAttention = 1, kMlp = 2;

ModelSpec model_of(std::int64_t kv_heads) {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 12;
  model.vocab_size = 37;
  model.layers.push_back({AttentionSpec{3 * kv_heads, kv_heads, 4, false, {}}, GatedMlpSpec{13}});
  return model;
}

/// Weights that depend on nothing but their place.
void load(ParamStore& store) {
  store.load([](const Parameter& parameter, std::int64_t first_row, std::span<double> rows) {
    const std::int64_t first = first_row * parameter.matrix_columns();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = std::sin(0.1 * static_cast<double>(first + static_cast<std::int64_t>(i)) + parameter.slab);
    }
  });
}

at::Tensor factor(std::int64_t first, std::int64_t columns, std::int64_t seed) {
  return at::cos(at::arange(first, first + columns, at::kDouble).unsqueeze(0) * 0.3 +
                 at::arange(5, at::kDouble).unsqueeze(1) + static_cast<double>(seed));
}

/// All of a block's rows on one rank.
struct Reference {
  explicit Reference(const ParamTable& parameters)
      : table(parameters), store(table, place(table, {}, 0), ElementType::Float64, at::kCPU, true) {
    load(store);
  }
  const ParamTable& table;
  ParamStore store;
};

/// One pass backward: the weights are looked at, products are added for every panel.
void run_trip(WeightTrip& trip, const ParamTable& table, int block, Reference& reference, int round) {
  const BlockLayout& layout = table.blocks()[block];
  for (int step = 0; step < trip.num_steps(); ++step) {
    const bool has_units = trip.units(step).size() > 0;
    for (int panel = 0; has_units && panel < static_cast<int>(layout.panels.size()); ++panel) {
      const std::int64_t rows = layout.panels[panel].rows_per_unit();
      const std::int64_t first = trip.units(step).begin * rows, count = trip.units(step).size() * rows;
      const int slab = table.panel_slab(block, panel);
      CHECK(at::equal(trip.panel(step, panel), reference.store.weight(slab).narrow(0, first, count)));
      trip.add_product(step, panel, factor(first, count, round), factor(0, 12, panel));
    }
    trip.step_done(step);
  }
  trip.finish();
}

}  // namespace

TEST_CASE("every unit's weights are at hand on one rank, and all gradients end where the rows are stored") {
  for (const std::int64_t heads : {1, 2, 3, 4}) {
    const ParamTable table(model_of(heads));
    for (const int degree : {1, 2, 3, 5, 8}) {
      for (const int block : {kEmbedding, kAttention, kMlp}) {
        for (const int steps : {1, 3}) {
          CAPTURE(heads);
          CAPTURE(degree);
          CAPTURE(block);
          Layout layout{.mesh = DeviceMesh({{Axis::Fold, degree}})};
          run_ranks({.num_ranks = degree}, [&](World& world) {
            Reference reference(table);
            ParamStore store(table, place(table, layout, world.rank()), ElementType::Float64, at::kCPU, true);
            load(store);
            const auto fold = world.split(layout.mesh, std::array{Axis::Fold});
            const auto flow = make_units_flow(store, *fold, block, steps, /*overlap=*/true);
            const std::int64_t units =
                fold_units(table.blocks()[block], store.placement().shares[block], degree)[world.rank()].size();
            CHECK(flow->num_steps() == std::clamp<std::int64_t>(units, 1, steps));
            for (const int round : {0, 1})
              run_trip(*flow->begin(Direction::Backward, 0), table, block, reference, round);
            for (int panel = 0; panel < static_cast<int>(table.blocks()[block].panels.size()); ++panel) {
              const int slab = table.panel_slab(block, panel);
              const Interval rows = store.placement().slabs[slab].rows;
              const at::Tensor a = factor(rows.begin, rows.size(), 0) + factor(rows.begin, rows.size(), 1);
              CHECK(at::allclose(store.gradient(slab), a.t().matmul(factor(0, 12, panel)), 1e-12, 1e-12));
            }
          });
        }
      }
    }
  }
}

TEST_CASE("what travels is what ranks compute with and do not store, once forward, and back with gradients") {
  const ParamTable table(model_of(2));
  const Layout layout{.mesh = DeviceMesh({{Axis::Fold, 8}})};
  run_ranks({.num_ranks = 8}, [&](World& world) {
    ParamStore store(table, place(table, layout, world.rank()), ElementType::Float32, at::kCPU, true);
    const auto fold = world.split(layout.mesh, std::array{Axis::Fold});
    const auto flow = make_units_flow(store, *fold, kAttention, 1, /*overlap=*/true);
    for (const Direction direction : {Direction::Forward, Direction::Backward}) {
      const std::unique_ptr<WeightTrip> trip = flow->begin(direction, 0);
      const bool has_units = trip->units(0).size() > 0;
      for (int panel = 0; has_units && direction == Direction::Backward && panel < 2; ++panel) {
        const at::Tensor rows = trip->panel(0, panel);
        trip->add_product(0, panel, at::ones({1, rows.size(0)}), at::ones({1, rows.size(1)}));
      }
      CHECK(trip->is_returning() == (direction == Direction::Backward));
      trip->step_done(0);
      trip->finish();
    }
    Bytes weights = 0, gradients = 0;
    for (const LedgerRow& row : world.ledger().rows()) {
      (row.purpose == Purpose::Weights ? weights : gradients) += row.logical;
    }
    at::Tensor sent = at::tensor({weights, gradients}, at::kLong);
    fold->all_reduce(sent, Purpose::Control).wait();
    const BlockLayout& block = table.blocks()[kAttention];
    const std::int64_t elements = foreign_elements(block, store.placement().shares[kAttention], 8);
    CHECK(sent[0].item<std::int64_t>() == 2 * elements * 4);
    CHECK(sent[1].item<std::int64_t>() == elements * 4);
  });
}

TEST_CASE("trips in a chain fetch ahead or not, also on ranks without units, and no message takes another's place") {
  const ParamTable table(model_of(2));
  const Layout layout{.mesh = DeviceMesh({{Axis::Fold, 8}})};
  for (const bool overlap : {true, false}) {
    run_ranks({.num_ranks = 8}, [&](World& world) {
      Reference reference(table);
      ParamStore store(table, place(table, layout, world.rank()), ElementType::Float64, at::kCPU, true);
      load(store);
      const auto fold = world.split(layout.mesh, std::array{Axis::Fold});
      const auto flow = make_units_flow(store, *fold, kAttention, 2, overlap);
      Trips trips(0);
      std::vector<WeightTrip*> chain;
      for (int i = 0; i < 3; ++i) chain.push_back(&trips.add(*flow, Direction::Backward));
      chain.front()->start();
      for (WeightTrip* trip : chain) run_trip(*trip, table, kAttention, reference, 0);
      const int slab = table.panel_slab(kAttention, 0);
      const Interval rows = store.placement().slabs[slab].rows;
      const at::Tensor a = factor(rows.begin, rows.size(), 0);
      CHECK(at::allclose(store.gradient(slab), 3 * a.t().matmul(factor(0, 12, 0)), 1e-12, 1e-12));
    });
  }
}
