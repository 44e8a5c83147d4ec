#include "octavo/layout/placement.h"

#include <doctest/doctest.h>

#include "octavo/base/text.h"

using namespace octavo;

namespace {
ModelSpec odd_model() {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 6;
  model.vocab_size = 13;
  for (int layer = 0; layer < 3; ++layer) model.layers.push_back({AttentionSpec{3, 3, 2, false, {}}, GatedMlpSpec{7}});
  return model;
}
}  // namespace

TEST_CASE("even parts cover the whole without gap or overlap") {
  for (const std::int64_t total : {0, 1, 5, 31, 64, 1000}) {
    for (const std::int64_t parts : {1, 2, 3, 7}) {
      for (const std::int64_t grain : {1, 32}) {
        std::int64_t end = 0;
        for (std::int64_t index = 0; index < parts; ++index) {
          const Interval part = even_part(total, parts, index, grain);
          CHECK(part.begin == end);
          CHECK(part.end >= part.begin);
          end = part.end;
        }
        CHECK(end == total);
      }
    }
  }
}

TEST_CASE("stored parts are aligned, do not overlap, and lie inside their block's bucket") {
  const ParamTable table(odd_model());
  for (const Bytes bucket_bytes : {Bytes{1}, Bytes{2000}, Bytes{1} << 30}) {
    for (const int degree : {1, 2, 3, 4}) {
      const Placement placement = place(table, parse_layout(cat("data=", degree)), degree - 1, bucket_bytes);
      CHECK(placement.parts.size() == table.slabs().size());
      std::int64_t end = 0;
      for (const StoredPart& part : placement.parts) {
        CHECK(part.local_offset % kAlignmentElements == 0);
        CHECK(part.local_offset >= end);
        end = part.local_offset + part.elements.size();
        bool inside = false;
        for (const Bucket& bucket : placement.buckets) {
          const int block = table.slabs()[part.slab].block;
          if (block < bucket.first_block || block > bucket.last_block) continue;
          inside = part.local_offset >= bucket.local.begin && end <= bucket.local.end;
          CHECK(bucket.local.size() % (kAlignmentElements * degree) == 0);
        }
        CHECK(inside);
      }
      CHECK(placement.local_elements >= end);
    }
  }
}

TEST_CASE("over the data axis every local element is primary exactly once") {
  const ParamTable table(odd_model());
  const Layout layout = parse_layout("data=3:zero1");
  std::vector<int> count(place(table, layout, 0).local_elements, 0);
  for (int rank = 0; rank < 3; ++rank) {
    const Placement placement = place(table, layout, rank, 500);
    CHECK(placement.primary == placement.optimized);
    for (const Interval& interval : placement.primary) {
      for (std::int64_t i = interval.begin; i < interval.end; ++i) {
        REQUIRE(i < placement.local_elements);
        if (count.size() < static_cast<std::size_t>(placement.local_elements))
          count.resize(placement.local_elements, 0);
        ++count[i];
      }
    }
  }
  for (const int times : count) CHECK(times == 1);
}

TEST_CASE("ZeRO 1 divides the optimizer state by the data degree and nothing else") {
  const ParamTable table(odd_model());
  const StateBytes whole = state_bytes(place(table, parse_layout("data=2"), 0), ElementType::BFloat16);
  const StateBytes cut = state_bytes(place(table, parse_layout("data=2:zero1"), 1), ElementType::BFloat16);
  CHECK(cut.optimizer * 2 == whole.optimizer);
  CHECK(cut.weights == whole.weights);
  CHECK(cut.gradients == whole.gradients);
  CHECK(whole.optimizer == 6 * whole.weights);  // 12 bytes of state for 2 bytes of weight
}

TEST_CASE("fewer sequences than ranks leave the last ranks idle") {
  const Layout layout = parse_layout("data=4");
  CHECK(sequences_of(layout, 3, 0) == Interval{0, 1});
  CHECK(sequences_of(layout, 3, 3).empty());
  CHECK(sequences_of(layout, 10, 0).size() == 3);
}
