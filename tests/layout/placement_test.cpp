#include "octavo/layout/placement.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

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

/// Two KV heads of two query heads each, with q/k norms and a tied head.
ModelSpec grouped_model() {
  ModelSpec model;
  model.model_type = "qwen3";
  model.hidden_size = 6;
  model.vocab_size = 16;
  model.tied_embeddings = true;
  for (int layer = 0; layer < 2; ++layer) model.layers.push_back({AttentionSpec{4, 2, 2, true, {}}, GatedMlpSpec{8}});
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

/// How often each element of each slab is counted, by parts or by primary parts, over all ranks.
std::vector<std::vector<int>> counts(const ParamTable& table, const Layout& layout, bool primary, Bytes bucket_bytes) {
  std::vector<std::vector<int>> count;
  for (const Slab& slab : table.slabs()) count.emplace_back(slab.elements(), 0);
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const Placement placement = place(table, layout, rank, bucket_bytes);
    const std::vector<Interval> everything = {{0, placement.local_elements}};
    for (const Interval& interval : primary ? placement.primary : everything) {
      for (const StoredPart& part : placement.parts) {
        const Interval both = intersection(interval, part.local());
        for (std::int64_t i = both.begin; i < both.end; ++i)
          ++count[part.slab][part.elements.begin + i - part.local_offset];
      }
    }
  }
  return count;
}

const std::vector<std::string> kLayouts = {"",
                                           "data=3",
                                           "data=3:zero1",
                                           "tensor=3:replicate",
                                           "tensor=2:pad",
                                           "tensor=4:pad:scatter",
                                           "tensor=2:replicate data=2:zero1",
                                           "data=3:zero1 tensor=6:replicate",
                                           "data=2 tensor=8:pad",
                                           "fold=2:weights",
                                           "fold=5:weights",
                                           "data=2:zero1 fold=3:weights",
                                           "fold=2:weights tensor=4:replicate",
                                           "tensor=3:pad:scatter fold=4:weights"};

TEST_CASE("over all ranks every element of every parameter is primary exactly once, and held at least once") {
  for (const ModelSpec& model : {odd_model(), grouped_model()}) {
    const ParamTable table(model);
    for (const std::string& text : kLayouts) {
      CAPTURE(text);
      for (const auto& slab : counts(table, parse_layout(text), /*primary=*/true, 500)) {
        for (const int times : slab) REQUIRE(times == 1);
      }
      for (const auto& slab : counts(table, parse_layout(text), /*primary=*/false, 500)) {
        for (const int times : slab) REQUIRE(times >= 1);
      }
    }
  }
}

TEST_CASE("the ranks of a tensor group have the same memory, buckets and sums") {
  const ParamTable table(grouped_model());
  for (const std::string& text : kLayouts) {
    CAPTURE(text);
    const Layout layout = parse_layout(text);
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Placement here = place(table, layout, rank, 500);
      const Placement there = place(table, layout, layout.mesh.neighbour(rank, Axis::Tensor, 1), 500);
      CHECK(here.local_elements == there.local_elements);
      CHECK(here.optimized == there.optimized);
      REQUIRE(here.sums.size() == there.sums.size());
      for (std::size_t i = 0; i < here.sums.size(); ++i) {
        CHECK(here.sums[i].axes == there.sums[i].axes);
        CHECK(here.sums[i].neighbours == there.sums[i].neighbours);
        CHECK(here.sums[i].local == there.sums[i].local);
      }
    }
  }
}

TEST_CASE(
    "what the tensor axis leaves partial is summed: vectors inside units, all vectors under scatter, shared rows") {
  const ParamTable table(grouped_model());  // q_norm and k_norm of 2 elements; two layers; hidden 6
  const auto sums = [&](const char* layout) { return place(table, parse_layout(layout), 0).sums; };
  CHECK(sums("data=2").empty());
  REQUIRE(sums("tensor=2").size() == 1);
  CHECK(sums("tensor=2")[0].axes == std::vector{Axis::Tensor});
  CHECK(sums("tensor=2")[0].elements() == 2 * 2 * 2);
  CHECK(sums("tensor=2:scatter")[0].elements() == 2 * 2 * 2 + 5 * 6);
  // Two KV heads over four ranks: pairs share out two query heads; k and v are 2 * 2 rows of 6.
  REQUIRE(sums("tensor=4:replicate").size() == 2);
  CHECK(sums("tensor=4:replicate")[0].neighbours == 2);
  CHECK(sums("tensor=4:replicate")[0].elements() == 2 * 2 * 2 * 6);
  CHECK(sums("tensor=4:replicate")[1].axes == std::vector{Axis::Tensor});
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

TEST_CASE("all ranks of the fold axis have their slabs, shards and partial sums at the same places, whatever divides") {
  for (const ModelSpec& model : {odd_model(), grouped_model()}) {
    const ParamTable table(model);
    for (const char* text :
         {"fold=2", "fold=5", "data=2:zero1 fold=3", "data=3:zero1 fold=4", "data=2:zero1 fold=2 tensor=3:pad"}) {
      const Layout layout = parse_layout(text);
      for (const Bytes bucket_bytes : {Bytes{1}, Bytes{2000}, Bytes{1} << 30}) {
        for (int rank = 0; rank < layout.world_size(); ++rank) {
          const int first = layout.mesh.neighbour(rank, Axis::Fold, 0);
          const Placement here = place(table, layout, rank, bucket_bytes),
                          there = place(table, layout, first, bucket_bytes);
          CAPTURE(text);
          CAPTURE(rank);
          CHECK(here.local_elements == there.local_elements);
          for (std::size_t slab = 0; slab < here.slabs.size(); ++slab) {
            CHECK(here.slabs[slab].local_offset == there.slabs[slab].local_offset);
          }
          CHECK(here.optimized == there.optimized);
          REQUIRE(here.sums.size() == there.sums.size());
          for (std::size_t sum = 0; sum < here.sums.size(); ++sum) CHECK(here.sums[sum].local == there.sums[sum].local);
        }
      }
    }
  }
}
