#include "octavo/trace/cost.h"

#include <doctest/doctest.h>

#include "golden_cases.h"
#include "octavo/base/error.h"

namespace octavo {
namespace {

TEST_CASE("an all-reduce costs a reduce-scatter and an all-gather, in bytes and in steps") {
  for (const Algorithm algorithm : {Algorithm::Direct, Algorithm::Ring}) {
    for (int num_ranks = 1; num_ranks <= 9; ++num_ranks) {
      const Bytes message = 720 * num_ranks;
      const auto both = collective_cost(Collective::AllReduce, algorithm, num_ranks, message);
      const auto scatter = collective_cost(Collective::ReduceScatter, algorithm, num_ranks, message);
      const auto gather = collective_cost(Collective::AllGather, algorithm, num_ranks, message);
      CHECK(both.sent == scatter.sent + gather.sent);
      CHECK(both.steps == scatter.steps + gather.steps);
    }
  }
}

TEST_CASE("a group of one rank moves nothing") {
  for (const Collective kind : kAllCollectives) {
    CHECK(collective_cost(kind, Algorithm::Ring, 1, 1000).sent == 0);
    CHECK(collective_cost(kind, Algorithm::Direct, 1, 1000).steps == 0);
  }
}

TEST_CASE("both algorithms move the same bytes and the direct one needs no more steps") {
  for (const Collective kind : kAllCollectives) {
    for (int num_ranks = 1; num_ranks <= 9; ++num_ranks) {
      const auto direct = collective_cost(kind, Algorithm::Direct, num_ranks, 1001);
      const auto ring = collective_cost(kind, Algorithm::Ring, num_ranks, 1001);
      CHECK(direct.sent == ring.sent);
      CHECK(direct.steps <= ring.steps);
    }
  }
}

TEST_CASE("four ranks gather 4096 bytes by sending three quarters of them") {
  CHECK(collective_cost(Collective::AllGather, Algorithm::Ring, 4, 4096).sent == 3072);
  CHECK(collective_cost(Collective::AllReduce, Algorithm::Ring, 4, 4096).sent == 6144);
  CHECK(collective_cost(Collective::AllReduce, Algorithm::Ring, 4, 4096).steps == 6);
}

TEST_CASE("a hierarchical all-reduce keeps all but its nodes' share inside") {
  for (const GoldenCase& one : golden_cases("hardware", "hier.")) {
    CAPTURE(one.id);
    const int inside = one.input.at("gpus_per_node"), nodes = one.input.at("nodes");
    const Bytes message = one.input.at("payload_bytes");
    const HierarchicalCost cost = hierarchical_cost(Collective::AllReduce, inside, nodes, message);
    CHECK(cost.inside.sent == one.expect.at("intra_node_bytes_per_gpu").get<Bytes>());
    CHECK(cost.outside.sent == one.expect.at("inter_node_bytes_per_gpu").get<Bytes>());
    const Bytes flat = collective_cost(Collective::AllReduce, Algorithm::Ring, inside * nodes, message).sent;
    CHECK(agrees(static_cast<double>(cost.outside.sent) / static_cast<double>(flat),
                 one.expect.at("inter_over_flat_busbw_volume").get<double>(), one.tolerance));
  }
}

TEST_CASE("a hierarchical call of one node or of one rank per node is a flat ring") {
  for (const Collective kind : {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter}) {
    for (int size = 1; size <= 9; ++size) {
      const CollectiveCost flat = collective_cost(kind, Algorithm::Ring, size, 5040);
      CHECK(hierarchical_cost(kind, size, 1, 5040).inside.sent == flat.sent);
      CHECK(hierarchical_cost(kind, size, 1, 5040).outside.sent == 0);
      CHECK(hierarchical_cost(kind, 1, size, 5040).outside.sent == flat.sent);
      CHECK(hierarchical_cost(kind, 1, size, 5040).outside.steps == flat.steps);
      CHECK(hierarchical_cost(kind, 1, size, 5040).inside.sent == 0);
    }
  }
}

TEST_CASE("bus factors are those of nccl-tests") {
  for (const GoldenCase& one : golden_cases("hardware", "factor.")) {
    CAPTURE(one.id);
    for (const auto& item : one.expect.items()) {
      CAPTURE(item.key());
      std::optional<Collective> kind;
      for (const Collective candidate : kAllCollectives) {
        if (item.key() == collective_name(candidate)) kind = candidate;
      }
      if (item.key() == "p2p") kind = Collective::Send;
      REQUIRE(kind.has_value());
      CHECK(agrees(bus_factor(*kind, one.input.at("ranks")), item.value().get<double>(), one.tolerance));
    }
  }
}

TEST_CASE("a tree moves a ring's bytes in fewer steps, a summing switch fewer bytes in two") {
  for (int num_ranks = 2; num_ranks <= 70; ++num_ranks) {
    for (const Collective kind : {Collective::AllReduce, Collective::Broadcast, Collective::Reduce}) {
      const CollectiveCost tree = collective_cost(kind, Algorithm::Tree, num_ranks, 1 << 20);
      const CollectiveCost ring = collective_cost(kind, Algorithm::Ring, num_ranks, 1 << 20);
      CHECK(tree.sent == ring.sent);
      CHECK(tree.steps <= ring.steps);
    }
    if (num_ranks > 3) {
      CHECK(collective_cost(Collective::AllReduce, Algorithm::InSwitch, num_ranks, 1 << 20).sent <
            collective_cost(Collective::AllReduce, Algorithm::Ring, num_ranks, 1 << 20).sent);
    }
  }
  CHECK(collective_cost(Collective::AllReduce, Algorithm::Tree, 8, 1).steps == 6);
  CHECK(collective_cost(Collective::AllReduce, Algorithm::Tree, 9, 1).steps == 8);
  CHECK(collective_cost(Collective::AllReduce, Algorithm::InSwitch, 8, 800).sent == 900);
}

TEST_CASE("a kind that an algorithm cannot do is an internal error") {
  CHECK_THROWS_AS(collective_cost(Collective::AllGather, Algorithm::Tree, 4, 1), InternalError);
  CHECK_THROWS_AS(collective_cost(Collective::AllGather, Algorithm::InSwitch, 4, 1), InternalError);
  CHECK_THROWS_AS(collective_cost(Collective::AllReduce, Algorithm::Hierarchical, 4, 1), InternalError);
  CHECK_THROWS_AS(hierarchical_cost(Collective::AllToAll, 2, 2, 1), InternalError);
  CHECK_THROWS_AS(hierarchical_cost(Collective::AllReduce, 0, 2, 1), InternalError);
}

TEST_CASE("a cost without ranks is an internal error") {
  CHECK_THROWS_AS(collective_cost(Collective::AllGather, Algorithm::Ring, 0, 1), InternalError);
}

TEST_CASE("direct parts cover every message once, in order, on multiples of 32 elements") {
  for (const std::int64_t count : {0, 1, 31, 32, 33, 64, 100, 1000, 4097}) {
    for (int num_ranks = 1; num_ranks <= 7; ++num_ranks) {
      std::int64_t next = 0;
      for (int index = 0; index < num_ranks; ++index) {
        const Part part = direct_part(count, num_ranks, index);
        CHECK(part.begin == next);
        CHECK(part.size() >= 0);
        CHECK((part.size() == 0 || part.begin % 32 == 0));
        next = part.end;
      }
      CHECK(next == count);
    }
  }
}

TEST_CASE("bytes copied by all ranks of an even message are the bytes of one phase") {
  const int num_ranks = 4;
  const std::int64_t num_elements = 4096, element_bytes = 4;
  const auto total = [&](Collective kind) {
    Bytes sum = 0;
    for (int index = 0; index < num_ranks; ++index) {
      sum += direct_copied_bytes({.kind = kind,
                                  .num_ranks = num_ranks,
                                  .index = index,
                                  .num_elements = num_elements,
                                  .element_bytes = element_bytes});
    }
    return sum;
  };
  const Bytes phase = (num_ranks - 1) * num_elements * element_bytes;
  CHECK(total(Collective::AllReduce) == phase);  // the sums are read in place
  CHECK(total(Collective::AllGather) == phase);
  CHECK(total(Collective::AllToAll) == phase);
  CHECK(total(Collective::Broadcast) == phase);
  CHECK(total(Collective::ReduceScatter) == 0);
  CHECK(total(Collective::Reduce) == 0);
}

TEST_CASE("nobody copies what is lent") {
  for (const Collective kind : {Collective::Broadcast, Collective::Send, Collective::Receive}) {
    DirectCall call{.kind = kind, .num_ranks = 3, .index = 1, .num_elements = 100, .element_bytes = 4};
    CHECK(direct_copied_bytes(call) == (kind == Collective::Send ? 0 : 400));
    call.lends = true;
    CHECK(direct_copied_bytes(call) == 0);
  }
}

}  // namespace
}  // namespace octavo
