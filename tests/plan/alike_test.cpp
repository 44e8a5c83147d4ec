#include "octavo/plan/alike.h"

#include <doctest/doctest.h>

#include "octavo/base/error.h"

using namespace octavo;

namespace {

using Groups = std::vector<std::vector<int>>;

Groups alike(const std::string& layout, std::int64_t batch) {
  ModelSpec spec;
  spec.model_type = "qwen3";
  spec.hidden_size = 16;
  spec.vocab_size = 64;
  spec.layers.push_back({AttentionSpec{4, 2, 4, true, {}}, GatedMlpSpec{24}});
  return alike_ranks(ParamTable(spec), parse_layout(layout), batch);
}

}  // namespace

TEST_CASE("ranks that take as many sequences are alike") {
  CHECK(alike("", 3) == Groups{{0}});
  CHECK(alike("data=4", 8) == Groups{{0, 1, 2, 3}});
  CHECK(alike("data=4:zero1", 6) == Groups{{0, 1}, {2, 3}});
  CHECK(alike("data=2 tensor=2", 3) == Groups{{0, 1}, {2, 3}});
}

TEST_CASE("ranks that compute other units, or count for nothing, are not alike") {
  CHECK(alike("tensor=2", 1) == Groups{{0, 1}});
  CHECK(alike("tensor=3:pad", 1) == Groups{{0, 1}, {2}});  // 64 rows: 22, 22, 20; two KV heads: 1, 1, 0
  CHECK(alike("tensor=3:replicate", 1) == Groups{{0}, {1, 2}});
}

TEST_CASE("shards that hold other partial gradients make ranks different") {
  CHECK(alike("data=2:zero1 tensor=2", 2).size() == 2);
  CHECK(alike("data=2 tensor=2", 2).size() == 1);
}

TEST_CASE("ranks of a fold axis that compute other units, or store what others compute with, are not alike") {
  CHECK(alike("fold=2:activations", 1) == Groups{{0, 1}});
  // Two KV heads over four ranks: two compute one each, the others lend the rest of it.
  CHECK(alike("fold=4:activations", 1) == Groups{{0, 2}, {1, 3}});
  CHECK(alike("fold=4:weights", 1) == Groups{{0, 1, 2, 3}});
}

TEST_CASE("ranks are listed as ranges") {
  CHECK(rank_ranges({0, 1, 2, 3, 8, 10, 11}) == "0-3, 8, 10-11");
  CHECK(rank_ranges({0, 2, 4, 6}, 2) == "0, 2, ...");
  CHECK(rank_ranges({}) == "");
}
