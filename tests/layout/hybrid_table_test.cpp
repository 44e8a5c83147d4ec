// Hybrid models and experts in the table of parameters: every family's files map to the same panels.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "octavo/base/error.h"
#include "octavo/layout/initial_weights.h"
#include "octavo/layout/misfit.h"
#include "octavo/layout/placement.h"
#include "octavo/spec/parameters.h"

using namespace octavo;

namespace {

constexpr std::int64_t kHidden = 8, kKey = 4, kValue = 6, kFeatures = 5, kShared = 7;

/// One DeltaNet layer and one attention layer; feed-forward parts as given. 2 key heads of 3 value heads each.
ModelSpec hybrid(const decltype(LayerSpec::ffn)& ffn, CheckpointForm form = {}) {
  ModelSpec model;
  model.hidden_size = kHidden;
  model.vocab_size = 12;
  model.zero_centred_norms = true;
  model.layers.push_back({DeltaNetSpec{2, 6, kKey, kValue, 4}, ffn});
  model.layers.push_back({AttentionSpec{4, 2, 4, true, {}, /*output_gate=*/true}, ffn});
  model.form = std::move(form);
  return model;
}

MoeSpec experts() {
  return {.num_experts = 4,
          .experts_per_token = 2,
          .num_features = kFeatures,
          .shared_features = kShared,
          .shared_gate = true};
}

std::vector<ModelSpec> all_families() {
  using Experts = CheckpointForm::Experts;
  return {hybrid(GatedMlpSpec{kFeatures}), hybrid(GatedMlpSpec{kFeatures}, {.prefix = "model.language_model."}),
          hybrid(experts(), {.grouped_delta_net = true}), hybrid(experts(), {.experts = Experts::Fused}),
          hybrid(MoeSpec{.num_experts = 4, .experts_per_token = 2, .num_features = kFeatures},
                 {.experts = Experts::Mixtral})};
}

}  // namespace

TEST_CASE("every slab element of a hybrid belongs to exactly one checkpoint element") {
  for (const ModelSpec& model : all_families()) {
    const ParamTable table(model);
    std::vector<std::vector<int>> owners;
    for (const Slab& slab : table.slabs()) owners.emplace_back(slab.elements(), 0);
    std::int64_t elements = 0;
    for (const Parameter& parameter : table.parameters()) {
      elements += parameter.elements();
      const std::int64_t indices = parameter.transposed ? parameter.matrix_columns() : parameter.matrix_rows();
      const std::int64_t width = table.slabs()[parameter.slab].width;
      CHECK(indices * width == parameter.elements());
      for (std::int64_t index = 0; index < indices; ++index) {
        for (std::int64_t column = 0; column < width; ++column) {
          ++owners[parameter.slab][parameter.slab_row(index) * width + column];
        }
      }
    }
    for (const auto& slab : owners) CHECK(std::set<int>(slab.begin(), slab.end()) == std::set<int>{1});
    CHECK(elements == num_parameters(model));
  }
}

TEST_CASE("a DeltaNet unit has its rows of each section: q, k, v, z, b, a") {
  const ParamTable table(hybrid(GatedMlpSpec{kFeatures}));
  const auto place = [&](const char* name, std::int64_t row) {
    return table.parameter(std::string("model.layers.0.linear_attn.") + name).slab_row(row);
  };
  constexpr std::int64_t kUnit = 2 * kKey + 2 * 3 * kValue + 2 * 3;  // rows of a key head
  // Sections of in_proj_qkv: q of both heads, k of both heads, v of all six value heads.
  CHECK(place("in_proj_qkv.weight", 0) == 0);
  CHECK(place("in_proj_qkv.weight", kKey) == kUnit);                              // q of key head 1
  CHECK(place("in_proj_qkv.weight", 2 * kKey) == kKey);                           // k of key head 0
  CHECK(place("in_proj_qkv.weight", 4 * kKey) == 2 * kKey);                       // v of value head 0
  CHECK(place("in_proj_qkv.weight", 4 * kKey + 3 * kValue) == kUnit + 2 * kKey);  // v of value head 3
  CHECK(place("in_proj_z.weight", 0) == 2 * kKey + 3 * kValue);
  CHECK(place("in_proj_b.weight", 4) == kUnit + 2 * kKey + 6 * kValue + 1);
  CHECK(place("in_proj_a.weight", 0) == 2 * kKey + 6 * kValue + 3);
  CHECK(place("conv1d.weight", 2 * kKey) == kKey);
  CHECK(place("dt_bias", 3) == 6 + 3);
  CHECK(place("out_proj.weight", 3 * kValue) == 3 * kValue);
  CHECK_THROWS_AS(place("in_proj_z.weight", 6 * kValue), InternalError);
}

TEST_CASE("projections grouped by key head lie as those in sections do") {
  const ParamTable grouped(hybrid(GatedMlpSpec{kFeatures}, {.grouped_delta_net = true}));
  const ParamTable sections(hybrid(GatedMlpSpec{kFeatures}));
  constexpr std::int64_t kGroup = 2 * kKey + 6 * kValue;
  const Parameter& qkvz = grouped.parameter("model.layers.0.linear_attn.in_proj_qkvz.weight");
  const Parameter& ba = grouped.parameter("model.layers.0.linear_attn.in_proj_ba.weight");
  const Parameter& qkv = sections.parameter("model.layers.0.linear_attn.in_proj_qkv.weight");
  const Parameter& z = sections.parameter("model.layers.0.linear_attn.in_proj_z.weight");
  const Parameter& a = sections.parameter("model.layers.0.linear_attn.in_proj_a.weight");
  for (std::int64_t head = 0; head < 2; ++head) {
    CHECK(qkvz.slab_row(head * kGroup) == qkv.slab_row(head * kKey));
    CHECK(qkvz.slab_row(head * kGroup + kKey) == qkv.slab_row((2 + head) * kKey));
    CHECK(qkvz.slab_row(head * kGroup + 2 * kKey) == qkv.slab_row(4 * kKey + head * 3 * kValue));
    CHECK(qkvz.slab_row(head * kGroup + 2 * kKey + 3 * kValue) == z.slab_row(head * 3 * kValue));
    CHECK(ba.slab_row(head * 6 + 3) == a.slab_row(head * 3));
  }
}

TEST_CASE("an expert lies in one piece, whether its file has a tensor per expert or one of all") {
  const ParamTable each(hybrid(experts())), fused(hybrid(experts(), {.experts = CheckpointForm::Experts::Fused}));
  for (std::int64_t e = 0; e < 4; ++e) {
    const std::string expert = "model.layers.0.mlp.experts." + std::to_string(e) + ".";
    const Parameter& gate_up = fused.parameter("model.layers.0.mlp.experts.gate_up_proj");
    CHECK(each.parameter(expert + "gate_proj.weight").slab_row(2) == gate_up.slab_row(e * 2 * kFeatures + 2));
    CHECK(each.parameter(expert + "up_proj.weight").slab_row(2) == gate_up.slab_row((2 * e + 1) * kFeatures + 2));
    CHECK(each.parameter(expert + "down_proj.weight").slab_row(3) ==
          fused.parameter("model.layers.0.mlp.experts.down_proj").slab_row(e * kHidden + 3));
  }
}

TEST_CASE("the tensor axis cuts key heads, experts and the shared expert's features; routers and norms stay whole") {
  const ModelSpec model = hybrid(MoeSpec{.num_experts = 4,
                                         .experts_per_token = 2,
                                         .num_features = kFeatures,
                                         .shared_features = 2 * kShared,
                                         .shared_gate = true});
  const ParamTable table(model);
  const Layout layout = parse_layout("tensor=2");
  std::int64_t whole = 0, stored = 0;
  for (const Slab& slab : table.slabs()) whole += slab.is_common ? slab.elements() : 0;
  for (int rank = 0; rank < 2; ++rank) {
    const Placement placement = place(table, layout, rank);
    for (const StoredPart& part : placement.parts) stored += part.elements.size();
    for (std::size_t b = 0; b < table.blocks().size(); ++b) {
      CHECK(placement.shares[b].units.size() * 2 == table.blocks()[b].num_units);
    }
  }
  CHECK(stored == num_parameters(model) + whole);
}

TEST_CASE("copies of experts cost the tokens sent to them, experts of zeros none") {
  const ParamTable table(hybrid(experts()));
  const auto price_of_experts = [&](const char* layout) {
    for (const MisfitPrice& price : misfit_prices(table, parse_layout(layout))) {
      if (price.kind == BlockKind::Moe) return price;
    }
    return MisfitPrice{};
  };
  // 4 experts over 8 ranks: each twice; a token passes 2 of them, in 2 layers.
  CHECK(price_of_experts("tensor=8:replicate").extra_elements == 2 * 4 * 3 * kFeatures * kHidden);
  CHECK(price_of_experts("tensor=8:replicate").extra_products == 2 * 2 * 3 * kFeatures * kHidden);
  CHECK(price_of_experts("tensor=8:pad").extra_elements == 2 * 4 * 3 * kFeatures * kHidden);
  CHECK(price_of_experts("tensor=8:pad").extra_products == 0);
}

TEST_CASE("value heads that share a key head can be shared out over neighbours") {
  const ParamTable table(hybrid(GatedMlpSpec{12}));
  const Layout layout = parse_layout("tensor=6:replicate");  // 2 key heads, 3 neighbours each
  const BlockLayout& block = table.blocks()[1];
  const BlockShare share = share_of(block, layout, 4);
  CHECK(share.splits_parts);
  CHECK(share.units == Interval{1, 2});
  CHECK(share.replica == 1);
  CHECK(share.rows_per_unit(block.panels[delta_net_panels::kIn]) == 2 * kKey + 2 * kValue + 2);
  CHECK(share.rows_per_unit(block.panels[delta_net_panels::kDecay]) == 2);
}

TEST_CASE("DeltaNet's decay and output norm are kept in float32, and neither they nor norms decay") {
  const ParamTable table(hybrid(experts()));
  for (const Slab& slab : table.slabs()) {
    CAPTURE(slab.name);
    const bool is_narrow = slab.rows == 1 && slab.width == kHidden && slab.name.ends_with("norm");
    CHECK(slab.float32 == (slab.name.ends_with(".decay") || slab.name.ends_with("output_norm")));
    if (is_narrow || slab.float32) CHECK_FALSE(slab.decays);
    if (slab.name.ends_with("router") || slab.name.ends_with("conv")) CHECK(slab.decays);
  }
}

TEST_CASE("a hybrid starts with zero-centred norms, plain output norms, and steps and decays in their ranges") {
  const ParamTable table(hybrid(GatedMlpSpec{kFeatures}));
  const auto drawn = [&](const char* name) {
    const Parameter& parameter = table.parameter(name);
    std::vector<float> values(parameter.elements());
    fill_initial_rows(parameter, 7, 0, values);
    return values;
  };
  for (const float value : drawn("model.layers.1.self_attn.q_norm.weight")) CHECK(value == 0.0f);
  for (const float value : drawn("model.layers.0.linear_attn.norm.weight")) CHECK(value == 1.0f);
  std::set<float> decays;
  for (const float value : drawn("model.layers.0.linear_attn.A_log")) {
    CHECK(value >= 0.0f);
    CHECK(value <= std::log(16.0f));
    decays.insert(value);
  }
  CHECK(decays.size() == 6);
  for (const float value : drawn("model.layers.0.linear_attn.dt_bias")) {
    const double step = std::log1p(std::exp(static_cast<double>(value)));
    CHECK(step >= 0.00099);
    CHECK(step <= 0.1001);
  }
  for (const float value : drawn("model.layers.0.linear_attn.conv1d.weight")) CHECK(std::abs(value) <= 0.5f);
}

TEST_CASE("latent attention and plain MLPs are refused a layout") {
  ModelSpec model = hybrid(PlainMlpSpec{8});
  CHECK_THROWS_WITH_AS(block_layouts(model), doctest::Contains("plain MLPs have no layout"), UsageError);
  model.layers[0].mixer = LatentAttentionSpec{2, 0, 4, 2, 4, 4};
  CHECK_THROWS_WITH_AS(block_layouts(model), doctest::Contains("latent attention"), UsageError);
}
