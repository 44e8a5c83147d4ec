#include "octavo/plan/collective_time.h"

#include <algorithm>
#include <array>

#include "golden_cases.h"

using namespace octavo;

namespace {

CollectiveTimes times_of(const std::string& cluster_text, int num_ranks) {
  const Cluster cluster = read_cluster(cluster_text);
  return CollectiveTimes(cluster.links(DeviceMesh({{Axis::Tensor, num_ranks}}), std::array{Axis::Tensor}),
                         cluster.accelerator.timing);
}

/// Ranks that are alone in their node, and share it with `inner` others of another axis.
CollectiveTimes times_across(const std::string& cluster_text, int num_ranks, int inner) {
  const Cluster cluster = read_cluster(cluster_text);
  return CollectiveTimes(
      cluster.links(DeviceMesh({{Axis::Data, num_ranks}, {Axis::Tensor, inner}}), std::array{Axis::Data}),
      cluster.accelerator.timing);
}

constexpr std::array kMoving = {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather,
                                Collective::Broadcast, Collective::Reduce,        Collective::AllToAll,
                                Collective::Send,      Collective::Receive};

}  // namespace

TEST_CASE("one rank takes no time, no bytes only latency, more bytes never less time") {
  for (const std::string cluster : {"H100x8x4", "MI300Xx8x4", "GB200x72", "A100-80x8x4"}) {
    CAPTURE(cluster);
    for (const Collective kind : kAllCollectives) {
      CHECK(times_of(cluster, 1).fastest(kind, 1 << 20).seconds == 0);
      for (const int ranks : {2, 3, 4, 8, 16, 24, 32}) {
        const CollectiveTimes times = times_of(cluster, ranks);
        Seconds last = 0;
        CHECK(times.fastest(kind, 0).seconds > 0);
        for (Bytes bytes = 0; bytes < Bytes{1} << 40; bytes = bytes * 3 + 1) {
          const Seconds now = times.fastest(kind, bytes).seconds;
          CHECK(now >= last);
          last = now;
        }
      }
    }
  }
}

TEST_CASE("the fastest is the least of the algorithms that the group has, and says its name") {
  for (const auto& times : {times_of("H100x8", 8), times_of("H100x8x4", 32), times_of("MI300Xx8", 4),
                            times_of("GB200x72x2", 144), times_across("H100x8x8", 8, 8)}) {
    for (const Collective kind : kMoving) {
      for (const Bytes bytes : {Bytes{0}, Bytes{1} << 12, Bytes{1} << 20, Bytes{1} << 30}) {
        const CollectiveTime fastest = times.fastest(kind, bytes);
        CHECK(times.by(fastest.algorithm, kind, bytes) == fastest.seconds);
        for (const Algorithm algorithm :
             {Algorithm::Direct, Algorithm::Ring, Algorithm::Tree, Algorithm::InSwitch, Algorithm::Hierarchical}) {
          const std::optional<Seconds> other = times.by(algorithm, kind, bytes);
          const bool is_candidate = algorithm != Algorithm::Hierarchical || kind == Collective::AllReduce;
          if (other && is_candidate) CHECK(*other >= fastest.seconds);
        }
      }
    }
  }
}

TEST_CASE("large messages take their bytes over what the links give") {
  const Bytes bytes = Bytes{1} << 36;
  const double size = static_cast<double>(bytes);
  const FabricTiming& h100 = find_accelerator("H100").timing;
  // Inside a node, a ring at its share of 450 GB/s.
  CHECK(agrees(times_of("H100x8", 8).fastest(Collective::AllGather, bytes).seconds,
               size * 7 / 8 / (450e9 * h100.ring_share.value), 0.001));
  // Eight ranks of a node leave it by eight NICs of 50 GB/s; one rank per node has one.
  CHECK(agrees(times_of("H100x8x8", 64).fastest(Collective::AllGather, bytes).seconds,
               size * 63 / 64 / std::min(450e9 * h100.ring_share.value, 8 * 50e9 * h100.network_share.value), 0.002));
  CHECK(agrees(times_across("H100x8x8", 8, 8).fastest(Collective::AllGather, bytes).seconds,
               size * 7 / 8 / (50e9 * h100.network_share.value), 0.002));
  // Two ranks of a full mesh have one link of the seven.
  const FabricTiming& mi300x = find_accelerator("MI300X").timing;
  CHECK(agrees(times_of("MI300Xx8", 2).fastest(Collective::AllReduce, bytes).seconds,
               size / (64e9 * mi300x.ring_share.value), 0.002));
  // An all-to-all over nodes is held up by the NICs: 56 of 64 parts go out.
  CHECK(agrees(times_of("H100x8x8", 64).fastest(Collective::AllToAll, bytes).seconds,
               size * 56 / 64 / (50e9 * h100.network_share.value), 0.002));
}

TEST_CASE("small messages over many nodes go by a tree, and an all-reduce in a node by its switch") {
  CHECK(times_of("H100x8x128", 1024).fastest(Collective::AllReduce, 4096).algorithm == Algorithm::Tree);
  CHECK(times_of("H100x8", 8).fastest(Collective::AllReduce, 1 << 30).algorithm == Algorithm::InSwitch);
  CHECK(times_of("MI300Xx8", 8).fastest(Collective::AllReduce, 1 << 30).algorithm == Algorithm::Ring);
  CHECK(times_of("H100x8", 8).fastest(Collective::AllReduce, 1 << 10).small);
  CHECK(!times_of("H100x8", 8).fastest(Collective::AllGather, 1 << 30).small);
}

TEST_CASE("a narrow way out between nodes is used by hierarchical sums") {
  Cluster cluster = read_cluster("H100x8x2");
  cluster.accelerator.network.nic_bits.value = 1e9;  // 125 MB/s
  const CollectiveTimes times(cluster.links(DeviceMesh({{Axis::Data, 16}}), std::array{Axis::Data}),
                              cluster.accelerator.timing);
  CHECK(times.fastest(Collective::AllReduce, 1 << 30).algorithm == Algorithm::Hierarchical);
  CHECK(times.by(Algorithm::Hierarchical, Collective::AllGather, 1 << 30).has_value());
  CHECK(!times.by(Algorithm::Hierarchical, Collective::Broadcast, 1 << 30).has_value());
}

TEST_CASE("negative bytes are an internal error") {
  CHECK_THROWS_AS(times_of("H100x8", 8).fastest(Collective::AllReduce, -1), InternalError);
}
