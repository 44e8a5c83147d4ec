#include "octavo/layout/param_table.h"

#include <doctest/doctest.h>

#include <set>

#include "octavo/base/error.h"
#include "octavo/layout/initial_weights.h"

using namespace octavo;

namespace {
ModelSpec small_model(bool tied, bool qk_norm) {
  ModelSpec model;
  model.model_type = qk_norm ? "qwen3" : "llama";
  model.hidden_size = 8;
  model.vocab_size = 11;
  model.tied_embeddings = tied;
  for (int layer = 0; layer < 2; ++layer) {
    model.layers.push_back({AttentionSpec{6, 2, 4, qk_norm, {}}, GatedMlpSpec{5}});
  }
  return model;
}
}  // namespace

TEST_CASE("every slab element belongs to exactly one checkpoint element") {
  for (const bool tied : {false, true}) {
    const ParamTable table(small_model(tied, true));
    std::vector<std::vector<int>> owners;
    for (const Slab& slab : table.slabs()) owners.emplace_back(slab.elements(), 0);
    for (const Parameter& parameter : table.parameters()) {
      const std::int64_t indices = parameter.transposed ? parameter.matrix_columns() : parameter.matrix_rows();
      const std::int64_t width = table.slabs()[parameter.slab].width;
      for (std::int64_t index = 0; index < indices; ++index) {
        for (std::int64_t column = 0; column < width; ++column) {
          ++owners[parameter.slab][parameter.slab_row(index) * width + column];
        }
      }
    }
    for (const auto& slab : owners) CHECK(std::set<int>(slab.begin(), slab.end()) == std::set<int>{1});
  }
}

TEST_CASE("the rows of one KV head lie together: its queries, its key, its value") {
  const ParamTable table(small_model(false, false));
  const Parameter& q = table.parameter("model.layers.1.self_attn.q_proj.weight");
  const Parameter& k = table.parameter("model.layers.1.self_attn.k_proj.weight");
  const Parameter& v = table.parameter("model.layers.1.self_attn.v_proj.weight");
  CHECK(q.slab == k.slab);
  CHECK(q.slab_row(0) == 0);
  CHECK(q.slab_row(11) == 11);  // the last query row of KV head 0: 3 heads of 4
  CHECK(k.slab_row(0) == 12);
  CHECK(v.slab_row(3) == 19);
  CHECK(q.slab_row(12) == 20);  // KV head 1 begins
  CHECK(table.slabs()[q.slab].rows == 40);
}

TEST_CASE("a tied head uses the embedding's slab and stores nothing of its own") {
  const ParamTable table(small_model(true, false));
  const int head = static_cast<int>(table.blocks().size()) - 1;
  CHECK(table.panel_slab(head, 0) == table.panel_slab(0, 0));
  CHECK(table.slabs()[table.panel_slab(0, 0)].uses == 2);
  CHECK_THROWS_AS(table.parameter("lm_head.weight"), UsageError);
}

TEST_CASE("panels decay and vectors do not") {
  const ParamTable table(small_model(false, true));
  for (const Slab& slab : table.slabs()) CHECK(slab.decays == (slab.rows > 1));
}

TEST_CASE("initial weights do not depend on how many rows are drawn at once") {
  const ParamTable table(small_model(false, false));
  const Parameter& down = table.parameter("model.layers.0.mlp.down_proj.weight");
  std::vector<float> whole(down.elements()), row(down.matrix_columns());
  fill_initial_rows(down, 7, 0, whole);
  for (std::int64_t r = 0; r < down.matrix_rows(); ++r) {
    fill_initial_rows(down, 7, r, row);
    CHECK(std::vector<float>(whole.begin() + r * row.size(), whole.begin() + (r + 1) * row.size()) == row);
  }
  std::vector<float> other(down.elements());
  fill_initial_rows(down, 8, 0, other);
  CHECK(other != whole);
}
