#include "octavo/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <array>

#include "octavo/base/error.h"
#include "octavo/comm/run_ranks.h"

using namespace octavo;

namespace {

ModelSpec small_model() {
  ModelSpec model;
  model.model_type = "llama";
  model.hidden_size = 12;
  model.vocab_size = 10;
  for (int layer = 0; layer < 3; ++layer) model.layers.push_back({AttentionSpec{3, 3, 4, false, {}}, GatedMlpSpec{9}});
  return model;
}

/// Every rank's gradients are rank + 1; blocks are reported last to first.
template <class Body>
void reduce_on(const std::string& text, Bytes bucket_bytes, bool overlap, const Body& body) {
  const ParamTable table(small_model());
  const Layout layout = parse_layout(text);
  run_ranks({.num_ranks = layout.world_size()}, [&](World& world) {
    ParamStore store(table, place(table, layout, world.rank(), bucket_bytes), ElementType::Float32, at::kCPU, true);
    const auto data = world.split(layout.mesh, std::array{Axis::Data});
    GradientReducer reducer(store, *data, layout.zero, overlap);
    for (int round = 0; round < 2; ++round) {
      store.gradients().fill_(world.rank() + 1);
      for (int block = static_cast<int>(table.blocks().size()) - 1; block >= 0; --block) reducer.block_done(block);
      reducer.finish();
      body(world, store, reducer);
    }
  });
}

}  // namespace

TEST_CASE("gradients are summed over the data axis, bucket by bucket, step after step") {
  for (const Bytes bucket_bytes : {Bytes{1}, Bytes{3000}, Bytes{1} << 30}) {
    for (const bool overlap : {true, false}) {
      reduce_on("data=3", bucket_bytes, overlap, [](World&, ParamStore& store, GradientReducer&) {
        CHECK((store.gradients() == 6).all().item<bool>());
      });
    }
  }
}

TEST_CASE("under ZeRO 1 each rank gets the sums of its primary intervals, and gathers what the others updated") {
  reduce_on("data=3:zero1", 3000, true, [](World& world, ParamStore& store, GradientReducer& reducer) {
    for (const Bucket& each : store.placement().buckets) {
      const Interval own = each.shard;
      CHECK((store.gradients().narrow(0, own.begin, own.size()) == 6).all().item<bool>());
      store.weights().narrow(0, own.begin, own.size()).fill_(10 + world.rank());
    }
    reducer.gather_weights();
    for (const Bucket& bucket : store.placement().buckets) {
      const auto parts = store.weights().narrow(0, bucket.local.begin, bucket.local.size()).chunk(3);
      for (int rank = 0; rank < 3; ++rank) CHECK((parts[rank] == 10 + rank).all().item<bool>());
    }
  });
}

TEST_CASE("reducing before every block is done is a bug that is caught") {
  const ParamTable table(small_model());
  CHECK_THROWS_AS(run_ranks({.num_ranks = 1},
                            [&](World& world) {
                              ParamStore store(table, place(table, {}, 0), ElementType::Float32, at::kCPU, true);
                              const auto data = world.split(DeviceMesh({}), std::array{Axis::Data});
                              GradientReducer reducer(store, *data, ZeroStage::None);
                              reducer.block_done(0);
                              reducer.finish();
                            }),
                  InternalError);
}
