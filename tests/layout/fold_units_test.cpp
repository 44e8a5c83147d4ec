#include "octavo/layout/fold_units.h"

#include <doctest/doctest.h>

#include "octavo/base/text.h"
#include "octavo/layout/fold_steps.h"

using namespace octavo;

namespace {

ModelSpec model_of(std::int64_t kv_heads, std::int64_t queries_per_head, std::int64_t features, std::int64_t words) {
  ModelSpec model;
  model.hidden_size = 8;
  model.vocab_size = words;
  model.layers.push_back({AttentionSpec{kv_heads * queries_per_head, kv_heads, 2, false, {}}, GatedMlpSpec{features}});
  return model;
}

/// Elements of a unit that a rank stores.
std::int64_t stored(const BlockLayout& block, const BlockShare& share, std::int64_t unit, int degree, int index) {
  std::int64_t elements = 0;
  for (const PanelLayout& panel : block.panels) {
    const std::int64_t rows = share.rows_per_unit(panel);
    for (std::int64_t row = unit * rows; row < (unit + 1) * rows; ++row) {
      const Interval part = fold_part(share.computed_units() * rows, degree, index);
      if (row >= part.begin && row < part.end) elements += panel.width;
    }
  }
  return elements;
}

constexpr int kAttention = 1, kMlp = 2;  // blocks of a model of one layer

}  // namespace

TEST_CASE("where the degree divides the units each rank computes those that it stores") {
  const auto block = block_layouts(model_of(8, 3, 64, 64))[kAttention];
  const BlockShare share = share_of(block, {}, 0);
  const std::vector<Interval> units = fold_units(block, share, 4);
  for (int index = 0; index < 4; ++index) CHECK(units[index] == Interval{2 * index, 2 * index + 2});
  CHECK(foreign_rows(block, share, 4).empty());
}

TEST_CASE("features and vocabulary rows are computed where they lie, however many ranks there are") {
  const auto blocks = block_layouts(model_of(2, 1, 13, 65));
  for (const int number : {0, kMlp, 3}) {
    const BlockShare share = share_of(blocks[number], {}, 0);
    for (const int degree : {2, 3, 5, 8, 20}) {
      const std::vector<Interval> units = fold_units(blocks[number], share, degree);
      for (int index = 0; index < degree; ++index) {
        CHECK(units[index] == fold_part(share.computed_units(), degree, index));
      }
      CHECK(foreign_rows(blocks[number], share, degree).empty());
    }
  }
}

TEST_CASE("every unit is computed by the lowest rank that stores most of its elements") {
  for (const std::int64_t heads : {1, 2, 3, 4, 5, 7, 12}) {
    for (const std::int64_t queries : {1, 2, 3, 6}) {
      const auto block = block_layouts(model_of(heads, queries, 8, 8))[kAttention];
      const BlockShare share = share_of(block, {}, 0);
      for (const int degree : {2, 3, 4, 5, 8, 11}) {
        CAPTURE(heads);
        CAPTURE(queries);
        CAPTURE(degree);
        const std::vector<Interval> units = fold_units(block, share, degree);
        std::int64_t next = 0;
        for (int index = 0; index < degree; ++index) {
          CHECK(units[index].begin == next);
          next = units[index].end;
          for (std::int64_t unit = units[index].begin; unit < units[index].end; ++unit) {
            const std::int64_t here = stored(block, share, unit, degree, index);
            for (int other = 0; other < degree; ++other) {
              const std::int64_t there = stored(block, share, unit, degree, other);
              CHECK((other < index ? there < here : there <= here));
            }
          }
        }
        CHECK(next == heads);
      }
    }
  }
}

TEST_CASE("a rank gets each row that it computes with and does not store from the one that does") {
  for (const std::int64_t heads : {2, 3, 5}) {
    const auto block = block_layouts(model_of(heads, 3, 8, 8))[kAttention];
    const BlockShare share = share_of(block, {}, 0);
    for (const int degree : {2, 3, 4, 8}) {
      const std::vector<Interval> units = fold_units(block, share, degree);
      const std::vector<ForeignRows> foreign = foreign_rows(block, share, degree);
      for (int panel = 0; panel < 2; ++panel) {
        const std::int64_t rows = share.rows_per_unit(block.panels[panel]);
        for (int user = 0; user < degree; ++user) {
          for (std::int64_t row = units[user].begin * rows; row < units[user].end * rows; ++row) {
            int sources = 0;
            for (const ForeignRows& each : foreign) {
              if (each.panel != panel || each.user != user || row < each.rows.begin || row >= each.rows.end) continue;
              ++sources;
              const Interval part = fold_part(heads * rows, degree, each.owner);
              CHECK((part.begin <= row && row < part.end));
            }
            const Interval own = fold_part(heads * rows, degree, user);
            CHECK(sources == (own.begin <= row && row < own.end ? 0 : 1));
          }
        }
      }
    }
  }
}

TEST_CASE("two KV heads over eight ranks keep two of them busy, four times as long, and the text says so") {
  const ParamTable table(model_of(2, 3, 64, 64));
  const Layout layout{.mesh = DeviceMesh({{Axis::Fold, 8}})};
  const std::vector<FoldExcess> excesses = fold_excesses(table, layout);
  REQUIRE(excesses.size() == 1);
  CHECK(excesses[0].kind == BlockKind::Attention);
  CHECK(excesses[0].num_blocks == 1);
  CHECK(excesses[0].most_units == 1);
  CHECK(excesses[0].idle_ranks == 6);
  CHECK(excesses[0].factor(8) == 4.0);
  // 20 rows of q, k, v and 12 of o: ranks 0 to 3 store 3 and 2 each, the others 2 and 1. The first unit runs on rank 0;
  // the second has 2 and 2 of its rows on rank 3, and less elsewhere.
  CHECK(fold_units(table.blocks()[kAttention], share_of(table.blocks()[kAttention], layout, 0), 8)[3].size() == 1);
  CHECK(excesses[0].foreign_elements == 2 * (10 + 6) * 8 - (3 + 2) * 8 - (2 + 2) * 8);
  const std::string text = fold_excess_text(excesses[0], layout, ElementType::Float32);
  CHECK(text.find("2 KV heads over fold=8") != std::string::npos);
  CHECK(text.find("4.00 times an even share") != std::string::npos);
  CHECK(text.find("6 ranks have none") != std::string::npos);
}

TEST_CASE("units that divide, and one rank, cost nothing more") {
  CHECK(fold_excesses(ParamTable(model_of(4, 2, 64, 64)), {.mesh = DeviceMesh({{Axis::Fold, 4}})}).empty());
  CHECK(fold_excesses(ParamTable(model_of(3, 2, 61, 67)), {}).empty());
}

TEST_CASE("beside the tensor axis the units are those of its rank") {
  const Layout layout{.mesh = DeviceMesh({{Axis::Tensor, 2}, {Axis::Fold, 2}})};
  const std::vector<FoldExcess> excesses = fold_excesses(ParamTable(model_of(6, 1, 64, 64)), layout);
  REQUIRE(excesses.size() == 1);
  CHECK(excesses[0].num_units == 3);
  CHECK(excesses[0].most_units == 2);
}
