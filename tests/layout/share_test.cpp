#include "octavo/layout/share.h"

#include <doctest/doctest.h>

#include <cmath>

#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/layout/misfit.h"
#include "octavo/layout/placement.h"

using namespace octavo;

namespace {

BlockLayout attention(std::int64_t kv_heads, std::int64_t queries_per_head) {
  ModelSpec model;
  model.hidden_size = 8;
  model.vocab_size = 64;
  model.layers.push_back({AttentionSpec{kv_heads * queries_per_head, kv_heads, 2, false, {}}, GatedMlpSpec{64}});
  return block_layouts(model)[1];
}

/// The founding lesson, small: four KV heads, six query heads each.
ModelSpec four_kv_heads() {
  ModelSpec model;
  model.hidden_size = 16;
  model.vocab_size = 65;
  model.layers = {{AttentionSpec{24, 4, 2, true, {}}, GatedMlpSpec{32}},
                  {AttentionSpec{24, 4, 2, true, {}}, GatedMlpSpec{32}}};
  return model;
}

}  // namespace

TEST_CASE("where the degree divides the units every rank has as many") {
  for (int index = 0; index < 2; ++index) {
    const BlockShare share = share_of(attention(4, 6), parse_layout("tensor=2"), index);
    CHECK(share.units == Interval{index * 2, index * 2 + 2});
    CHECK(share.counts());
    CHECK(share.computed_units() == 2);
  }
}

TEST_CASE("four KV heads over eight ranks are refused, and the message says what would fit") {
  CHECK_THROWS_WITH_AS(share_of(attention(4, 6), parse_layout("tensor=8"), 0),
                       doctest::Contains("4 KV heads over tensor=8 do not divide; use tensor=1, 2 or 4"), UsageError);
}

TEST_CASE("replicated KV heads share out their query heads where these divide") {
  const Layout layout = parse_layout("tensor=8:replicate");
  const BlockShare share = share_of(attention(4, 6), layout, 5);
  CHECK(share.units == Interval{2, 3});
  CHECK(share.replicas == 2);
  CHECK(share.replica == 1);
  CHECK(share.splits_parts);
  CHECK(share.counts());
  CHECK(share.rows_per_unit(attention(4, 6).panels[attention_panels::kQkv]) == (3 + 2) * 2);
  const BlockShare alike = share_of(attention(4, 5), layout, 5);
  CHECK_FALSE(alike.splits_parts);
  CHECK_FALSE(alike.counts());
  CHECK(share_of(attention(4, 5), layout, 4).counts());
}

TEST_CASE("padding gives every rank equally many units, the last of them zeros") {
  const Layout layout = parse_layout("tensor=3:pad");
  CHECK(share_of(attention(4, 6), layout, 1).units == Interval{2, 4});
  CHECK(share_of(attention(4, 6), layout, 2).units.empty());
  CHECK(share_of(attention(4, 6), layout, 2).num_padded == 2);
}

TEST_CASE("a layout that fits has no price") {
  CHECK(misfit_prices(ParamTable(four_kv_heads()), parse_layout("")).empty());
}

TEST_CASE("the price of a misfit is what the ranks store and compute beyond the model") {
  const ParamTable table(four_kv_heads());
  std::int64_t model_elements = 0;
  for (const Slab& slab : table.slabs()) model_elements += slab.decays ? slab.elements() : 0;
  for (const char* text : {"tensor=8:replicate", "tensor=8:pad", "tensor=3:replicate", "tensor=6:pad:scatter",
                           "tensor=7:pad", "data=2:zero1 tensor=8:replicate"}) {
    CAPTURE(text);
    const Layout layout = parse_layout(text);
    std::int64_t stored = 0, summed = 0, priced = 0, priced_sum = 0;
    for (int rank = 0; rank < layout.mesh.size(Axis::Tensor); ++rank) {
      const Placement placement = place(table, layout, rank);
      for (std::size_t slab = 0; slab < table.slabs().size(); ++slab) {
        if (table.slabs()[slab].decays) stored += placement.slabs[slab].rows.size() * table.slabs()[slab].width;
      }
      for (const GradientSum& sum : placement.sums) summed += sum.elements();
      for (const Slab& slab : table.slabs()) {
        if (!slab.decays && !partial_axes(slab, layout).empty()) summed -= slab.elements();
      }
    }
    for (const MisfitPrice& price : misfit_prices(table, layout)) {
      priced += price.extra_elements;
      priced_sum += price.summed_elements;
      CHECK(misfit_text(price, layout, ElementType::Float32).find("tensor=") != std::string::npos);
    }
    CHECK(stored == model_elements + priced);
    if (layout.zero == ZeroStage::None) CHECK(summed == priced_sum);
  }
}

TEST_CASE("replicating four KV heads at degree eight doubles the k and v rows, and the keys and values") {
  const ParamTable table(four_kv_heads());
  const MisfitPrice price = misfit_prices(table, parse_layout("tensor=8:replicate"))[1];
  CHECK(price.kind == BlockKind::Attention);
  CHECK(price.num_blocks == 2);
  CHECK(price.extra_elements == 2 * (4 * 2 * 2) * 16);
  CHECK(price.extra_cache == 2 * (4 * 2 * 2));
  CHECK(price.extra_heads == 0);
  const MisfitBytes bytes = misfit_bytes(price, parse_layout("tensor=8:replicate"), ElementType::BFloat16);
  CHECK(bytes.weights == 2.0 * 512 / 8);
  CHECK(bytes.optimizer == 12.0 * 512 / 8);
  CHECK(bytes.matmul == 2.0 * 512 / 8);
}
